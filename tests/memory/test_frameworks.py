"""Names that single frameworks have for what the planner reads are read where they can mean nothing else, and said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.job.memory_model import Memory
from sagefit.job.script_names import NAMES, SIZES, UNCOUNTED
from sagefit.memory import Diffusion, Vision, Workload
from sagefit.memory.knobs import is_read, name_of
from sagefit.memory.lookalikes import remarks
from sagefit.memory.read import read
from sagefit.paths import ROOT
from sagefit.planning.changes import changes_of

LLAMA = {"model": "meta-llama/Llama-3.2-1B", "stack": "hf-trainer"}
YOLO = {"model": "yolov8m"}
RESNET = {"model": "resnet50"}
SDXL = {"model": "stabilityai/stable-diffusion-xl-base-1.0"}
TABLE = {"model": {"family": "tabular", "library": "xgboost", "rows": 9, "columns": 9}}
SWIFT = {**LLAMA, "stack": "ms-swift"}
TORCHTUNE = {**LLAMA, "stack": "torchtune"}


def path_of(folder: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], **more: Any) -> Path:
    image = {"framework": "pytorch", "version": "2.6"}
    return write_job(folder, {"memory": memory, "hyperparameters": hyperparameters, "image": image, **more})


def workload_of(folder: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], **more: Any) -> Workload:
    return read(load_job(str(path_of(folder, memory, hyperparameters, **more))))


def refusal(folder: Path, memory: dict[str, Any], hyperparameters: dict[str, Any]) -> str:
    with pytest.raises(SagefitError) as caught:
        workload_of(folder, memory, hyperparameters)
    return f"{caught.value}\n{caught.value.hint}"


def has(workload: Workload, *words: str) -> bool:
    return any(all(word in note for word in words) for note in workload.notes)


@pytest.mark.parametrize(
    ("memory", "name", "value", "field", "taken"),
    [
        (LLAMA, "sequence_len", 8192, "sequence_length", 8192),
        (LLAMA, "cutoff_len", "4096", "sequence_length", 4096),
        (TORCHTUNE, "tokenizer.max_seq_len", 2048, "sequence_length", 2048),
        (TORCHTUNE, "enable_activation_checkpointing", True, "gradient_checkpointing", True),
        (LLAMA, "use_gradient_checkpointing", "unsloth", "gradient_checkpointing", True),
        (LLAMA, "bf16", "auto", "precision", "bf16-mixed"),
        (LLAMA, "precision", "16-mixed", "precision", "fp16-mixed"),
        (LLAMA, "precision", "bf16-true", "precision", "bf16"),
        (RESNET, "precision", "bf16-mixed", "precision", "bf16-mixed"),
        (RESNET, "amp", True, "precision", "fp16-mixed"),
        (YOLO, "amp", "true", "precision", "fp16-mixed"),
        (LLAMA, "optimizer", "adamw_bnb_8bit", "optimizer", "adamw-8bit"),
        (TORCHTUNE, "optimizer", "bitsandbytes.optim.PagedAdamW8bit", "optimizer", "paged-adamw-8bit"),
        (YOLO, "optimizer", "SGD", "optimizer", "sgd-momentum"),
        (SDXL, "optimizer-type", "AdamW8bit", "optimizer", "adamw-8bit"),
        (SDXL, "use_8bit_adam", True, "optimizer", "adamw-8bit"),
        ({**LLAMA, "precision": "bf16"}, "flash_attention", True, "attention", "flash"),
        ({**LLAMA, "precision": "bf16"}, "flash_attn", "fa2", "attention", "flash"),
        (LLAMA, "flash_attn", "disabled", "attention", "eager"),
        ({**SWIFT, "precision": "bf16"}, "attn_impl", "flash_attn", "attention", "flash"),
        ({**SDXL, "method": "lora"}, "rank", 64, "lora_rank", 64),
        ({**SDXL, "method": "lora"}, "network_dim", 32, "lora_rank", 32),
        (SDXL, "network_dim", 32, "method", "lora"),
        (YOLO, "workers", 8, "workers", 8),
        (SDXL, "max_data_loader_n_workers", 2, "workers", 2),
        (YOLO, "batch", 32, "micro_batch", 32),
        (LLAMA, "adapter", "qlora", "method", "qlora"),
        (LLAMA, "finetuning_type", "lora", "method", "lora"),
        (SWIFT, "train_type", "lora", "method", "lora"),
        (LLAMA, "quantization_bit", 4, "method", "qlora"),
        (LLAMA, "quantization_bit", 8, "base_dtype", "8-bit"),
        ({**LLAMA, "method": "lora"}, "lora_target_linear", True, "lora_targets", "all-linear"),
        ({**LLAMA, "method": "lora"}, "lora_target", "all", "lora_targets", "all-linear"),
        ({**SWIFT, "method": "lora"}, "target_modules", "all-linear", "lora_targets", "all-linear"),
        ({**LLAMA, "method": "lora"}, "torch_dtype", "bfloat16", "base_dtype", "16-bit"),
        ({**LLAMA, "method": "lora"}, "dtype", "torch.float16", "precision", "fp16-mixed"),
        (LLAMA, "torch_dtype", "bfloat16", "precision", "bf16"),
        (TORCHTUNE, "dtype", "bf16", "precision", "bf16"),
        ({**TORCHTUNE, "method": "lora"}, "dtype", "bf16", "precision", "bf16"),
        (SWIFT, "deepspeed", "zero3_offload", "cpu_offload", "parameters"),
        (SWIFT, "deepspeed", "zero2", "sharding", "zero2"),
    ],
)  # fmt: skip
def test_a_name_is_read_and_said(
    tmp_path: Path, memory: dict[str, Any], name: str, value: object, field: str, taken: object
) -> None:
    workload = workload_of(tmp_path, memory, {name: value})
    assert getattr(workload, field) == taken
    assert has(workload, f"hyperparameters.{name}", field)


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "field", "taken"),
    [
        (LLAMA, {"batch": 32}, "micro_batch", 8),
        (RESNET, {"batch": 32}, "micro_batch", 1),
        ({**LLAMA, "method": "lora"}, {"rank": 64}, "lora_rank", 16),
        (LLAMA, {"workers": 8}, "workers", 0),
        (SDXL, {"dtype": "bf16"}, "precision", "fp32"),
        (LLAMA, {"amp": True}, "precision", "fp32"),
        (TABLE, {"optimizer": "sgd"}, "optimizer", "adamw"),
        (LLAMA, {"flash_attention": False}, "attention", "sdpa"),
        ({**LLAMA, "attention": "eager"}, {"flash_attn": "auto"}, "attention", "eager"),
        ({**LLAMA, "precision": "bf16-mixed"}, {"torch_dtype": "bfloat16"}, "precision", "bf16-mixed"),
        ({**LLAMA, "optimizer": "sgd"}, {"optimizer": "sgd"}, "optimizer", "sgd"),
        ({**RESNET, "precision": "bf16-mixed"}, {"amp": True}, "precision", "bf16-mixed"),
        ({**LLAMA, "sequence_length": 700}, {"max_completion_length": 512}, "sequence_length", 700),
        (LLAMA, {"finetuning_type": "freeze", "lora_rank": 8}, "method", "full"),
        ({**SDXL, "optimizer": "paged-adamw-8bit"}, {"use_8bit_adam": True}, "optimizer", "paged-adamw-8bit"),
        ({**YOLO, "knobs": {"micro_batch": "batch"}}, {"batch": 16, "device": "0,1"}, "micro_batch", 16),
    ],
)  # fmt: skip
def test_a_word_that_means_something_else_or_nothing_is_left(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], field: str, taken: object
) -> None:
    assert getattr(workload_of(tmp_path, memory, hyperparameters), field) == taken


def test_two_names_in_other_words_agree(tmp_path: Path) -> None:
    given = {
        "gradient_checkpointing": True,
        "use_gradient_checkpointing": "unsloth",
        "attn_implementation": "flash_attention_2",
        "flash_attention": True,
        "bf16": True,
    }
    workload = workload_of(tmp_path, LLAMA, given)
    assert (workload.gradient_checkpointing, workload.attention) == (True, "flash")
    assert "both are names of optimizer" in refusal(tmp_path, LLAMA, {"optim": "adamw_torch", "optimizer": "adafactor"})


@pytest.mark.parametrize(
    ("device", "batch"), [(None, 16), ("0", 16), ("0,1,2,3", 4), ("[0, 1]", 8), (4, 16), ("cpu", 16)]
)
def test_the_batch_of_ultralytics_is_that_of_all_gpus(tmp_path: Path, device: object, batch: int) -> None:
    given = {"batch": 16, **({} if device is None else {"device": device})}
    assert workload_of(tmp_path, YOLO, given).micro_batch == batch


def test_a_batch_that_ultralytics_chooses_is_said(tmp_path: Path) -> None:
    workload = workload_of(tmp_path, YOLO, {"batch": -1})
    assert has(workload, "hyperparameters.batch, -1", "memory.micro_batch says")


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "size"),
    [
        (YOLO, {"imgsz": 1280}, 1280),
        (RESNET, {"img-size": "320"}, 320),
        ({"model": {"family": "vision", "name": "yolov8m", "image_size": 1280}}, {"imgsz": 1280}, 1280),
        (SDXL, {"resolution": 512}, (512, 512)),
        (SDXL, {"resolution": "1024,768"}, (768, 1024)),
        (RESNET, {"resolution": 512}, 0),
        (SDXL, {"resolution": 12}, (0, 0)),
        (SDXL, {"resolution": "low"}, (0, 0)),
    ],
)
def test_the_size_of_images(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], size: object
) -> None:
    workload = workload_of(tmp_path, memory, hyperparameters)
    model = workload.model
    assert isinstance(model, Vision | Diffusion)
    found = model.image_size if isinstance(model, Vision) else (model.height, model.width)
    assert found == size
    if memory in (YOLO, SDXL):
        assert has(workload, "hyperparameters.", "taken as" if found != (0, 0) else "is no size")


def test_two_sizes_contradict(tmp_path: Path) -> None:
    memory = {"model": {"family": "vision", "name": "yolov8m", "image_size": 640}}
    message = refusal(tmp_path, memory, {"imgsz": 1280})
    assert "memory.model.image_size: is 640, and hyperparameters.imgsz (line " in message
    assert "set image_size: 1280" in message


@pytest.mark.parametrize(
    ("hyperparameters", "objective", "length"),
    [
        ({"max_prompt_length": 1024, "max_completion_length": 2048}, "grpo", 3072),
        ({"max_completion_length": 256}, "grpo", 768),
        ({"max_prompt_length": 100, "max_completion_length": 200}, "dpo", 300),
        ({"max_completion_length": 256}, "dpo", 512),
        ({"max_prompt_length": 100, "max_completion_length": 200, "max_length": 256}, "dpo", 256),
    ],
)
def test_prompt_and_answer_go_through_the_model_together(
    tmp_path: Path, hyperparameters: dict[str, Any], objective: str, length: int
) -> None:
    workload = workload_of(tmp_path, {**LLAMA, "objective": objective}, hyperparameters)
    assert workload.sequence_length == length


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "checkpointing"),
    [
        (SWIFT, {}, True),
        (SWIFT, {"gradient_checkpointing": False}, False),
        ({**SWIFT, "gradient_checkpointing": False}, {}, False),
        (LLAMA, {"finetuning_type": "lora"}, True),
        (LLAMA, {"finetuning_type": "lora", "disable_gradient_checkpointing": True}, False),
        (LLAMA, {}, False),
    ],
)
def test_some_frameworks_checkpoint_by_themselves(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], checkpointing: bool
) -> None:
    workload = workload_of(tmp_path, memory, hyperparameters)
    assert workload.gradient_checkpointing is checkpointing
    assert has(workload, "checkpoints activations unless") is checkpointing


# DeepSpeed's batch

CONFIGURATION = {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4}


@pytest.mark.parametrize("name", ["deepspeed", "deepspeed_config"])
@pytest.mark.parametrize(
    ("settings", "memory", "hyperparameters", "batch", "steps"),
    [
        (CONFIGURATION, {}, {}, 8, 4),
        (CONFIGURATION, {"stack": "deepspeed"}, {"batch_size": 2, "gradient_accumulation_steps": 1}, 8, 4),
        (CONFIGURATION, {}, {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 1}, 2, 1),
        (CONFIGURATION, {"stack": "unknown"}, {"per_device_train_batch_size": 2}, 2, 4),
        ({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}, {}, {}, 8, 1),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 2}, {"world_size": 8}, {}, 4, 2),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4}, {"world_size": 8}, {}, 4, 2),
        ({"train_batch_size": 64}, {}, {}, 8, 1),
        ({"train_batch_size": 64}, {"stack": "unknown"}, {}, 1, 1),
    ],
)  # fmt: skip
def test_the_batch_of_a_deepspeed_configuration(
    tmp_path: Path,
    name: str,
    settings: dict[str, Any],
    memory: dict[str, Any],
    hyperparameters: dict[str, Any],
    batch: int,
    steps: int,
) -> None:
    content = json.dumps({**settings, "zero_optimization": {"stage": 2}})
    workload = workload_of(tmp_path, {**LLAMA, **memory}, {name: content, **hyperparameters})
    assert (workload.micro_batch, workload.accumulation, workload.sharding) == (batch, steps, "zero2")
    assert has(workload, f"hyperparameters.{name}") or settings["train_micro_batch_size_per_gpu"] == "auto"
    if "batch_size" in hyperparameters:
        assert has(workload, "hyperparameters.batch_size", "is not what", "which counts")
    if "per_device_train_batch_size" in hyperparameters:
        assert has(workload, "says micro_batch 8", "hyperparameters.per_device_train_batch_size 2, which counts")


def test_the_gpus_of_a_named_type_divide_the_batch(tmp_path: Path) -> None:
    content = json.dumps({"train_batch_size": 64})
    resources = {"instance_type": "ml.g5.12xlarge", "instance_count": 2, "max_runtime": "1h"}
    more = {"resources": resources, "attempts": "auto"}
    workload = workload_of(tmp_path, LLAMA, {"deepspeed": content}, **more)
    assert workload.micro_batch == 8


def test_a_written_batch_contradicts_a_deepspeed_configuration(tmp_path: Path) -> None:
    message = refusal(tmp_path, {**LLAMA, "micro_batch": 2}, {"deepspeed": json.dumps(CONFIGURATION)})
    assert "memory.micro_batch: is 2, and hyperparameters.deepspeed (line " in message


# Rules ask what holds after everything was read


@pytest.mark.parametrize(
    ("hyperparameters", "memory", "method"),
    [
        ({"use_peft": True, "lora_r": 16}, {"base_dtype": "16-bit"}, "lora"),
        ({"load_in_4bit": True}, {"lora_targets": "all-linear"}, "qlora"),
        ({"load_in_4bit": True, "lora_r": 16}, {"lora_rank": 16}, "qlora"),
        ({"finetuning_type": "lora"}, {"lora_rank": 8}, "lora"),
    ],
)
def test_a_method_that_the_script_is_told_allows_its_fields(
    tmp_path: Path, hyperparameters: dict[str, Any], memory: dict[str, Any], method: str
) -> None:
    assert workload_of(tmp_path, {**LLAMA, **memory}, hyperparameters).method == method


@pytest.mark.parametrize(
    ("hyperparameters", "memory", "said"),
    [
        ({}, {"lora_rank": 8}, "method is full, which trains no adapters"),
        ({"use_peft": False}, {"lora_rank": 8}, "method is full, which trains no adapters"),
        ({"adapter": "full"}, {"base_dtype": "16-bit"}, "method is full, which trains no adapters"),
        ({"use_peft": True}, {"method": "full", "lora_rank": 8}, "method is full, which trains no adapters"),
        ({"load_in_4bit": True}, {"stack": "torchtitan"}, "torchtitan has no qlora"),
    ],
)
def test_a_method_that_the_script_is_told_forbids_others(
    tmp_path: Path, hyperparameters: dict[str, Any], memory: dict[str, Any], said: str
) -> None:
    assert said in refusal(tmp_path, {**LLAMA, **memory}, hyperparameters)


def test_a_4_bit_configuration_counts_where_the_script_loads_4_bits(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "vocab_size": 32000,
        "quantization_config": {"load_in_4bit": True},
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    memory = {"model": "config.json", "stack": "hf-trainer"}
    assert not has(workload_of(tmp_path, memory, {"load_in_4bit": True}), "quantization_config is ignored")
    assert has(workload_of(tmp_path, memory, {"use_peft": True}), "is ignored, as the method is lora")


# What is not read or not counted


@pytest.mark.parametrize("name", ["batch-size", "batch_size", "Batch_Size"])
def test_a_batch_by_habit_is_said_however_it_is_spelt(tmp_path: Path, name: str) -> None:
    assert has(workload_of(tmp_path, RESNET, {name: 64}), f"hyperparameters.{name}, 64, is taken as the batch of one")


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "field"),
    [
        (LLAMA, {"bs": 8}, "micro_batch"),
        (LLAMA, {"seqlen": 4096}, "sequence_length"),
        (LLAMA, {"r": 16}, "lora_rank"),
        (LLAMA, {"strategy": "fsdp", "zero_stage": 3}, "sharding"),
        (SDXL, {"dtype": "bf16"}, "precision"),
        (SDXL, {"quantization": "4bit"}, "method"),
        (LLAMA, {"workers": 8}, "loader.workers"),
    ],
)
def test_what_looks_like_a_field_and_is_not_read_is_said_once(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], field: str
) -> None:
    name = next(iter(hyperparameters))
    job = load_job(str(path_of(tmp_path, memory, hyperparameters)))
    found = [(remark.field, remark.message, remark.knob) for remark in remarks(job)]
    assert found == [(("hyperparameters", name), f"looks like memory.{field} and is not read", f"give memory.{field}")]


@pytest.mark.parametrize(
    ("memory", "hyperparameters"),
    [
        (LLAMA, {"batch_size": 4, "bs": 8}),
        ({**LLAMA, "micro_batch": 4}, {"bs": 8}),
        ({**LLAMA, "knobs": {"micro_batch": "bs"}}, {"bs": 8}),
        (LLAMA, {"strategy": "ddp"}),
        (LLAMA, {"strategy": "epoch"}),
        (LLAMA, {"task": "lm", "framework": "trl", "momentum": 0.9, "dropout": 0.1}),
        (LLAMA, {"quantization": False, "context": "some words"}),
        (RESNET, {"context": 4096}),
        (TABLE, {"objective": "binary:logistic", "bs": 3}),
    ],
)  # fmt: skip
def test_what_is_something_else_gets_no_remark(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any]
) -> None:
    assert not list(remarks(load_job(str(path_of(tmp_path, memory, hyperparameters)))))


def test_no_job_here_gets_a_remark() -> None:
    for path in (*sorted(ROOT.glob("jobs/*.yaml")), *sorted(ROOT.glob("examples/*/*.yaml"))):
        if "memory:" in path.read_text(encoding="utf-8"):
            assert not [remark for remark in remarks(load_job(str(path))) if "not read" in remark.message], path


def test_a_model_that_is_parted_is_said(tmp_path: Path) -> None:
    given = {"tensor-model-parallel-size": 4, "pipeline-model-parallel-size": 2, "context_parallel_size": 1}
    [remark] = remarks(load_job(str(path_of(tmp_path, {**LLAMA, "stack": "megatron"}, given))))
    assert remark.field == ("hyperparameters", "tensor-model-parallel-size")
    assert remark.message.startswith("4 and hyperparameters.pipeline-model-parallel-size 2 are not considered: ")
    assert "family: measured" in remark.knob


def test_a_model_that_is_whole_gets_no_remark(tmp_path: Path) -> None:
    assert not list(remarks(load_job(str(path_of(tmp_path, LLAMA, {"tensor_model_parallel_size": 1})))))


@pytest.mark.parametrize(("memory", "name"), [(SDXL, "use_ema"), (SDXL, "train_text_encoder"), (RESNET, "model_ema")])
def test_a_switch_whose_memory_is_not_predicted_is_said(tmp_path: Path, memory: dict[str, Any], name: str) -> None:
    assert has(workload_of(tmp_path, memory, {name: True}), f"hyperparameters.{name} is not considered")
    assert not has(workload_of(tmp_path, memory, {name: False}), name)


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "precision"),
    [
        ({"stack": "plain-torch"}, {"dtype": "bfloat16"}, "bf16-mixed"),
        ({}, {"dtype": "float16"}, "fp16-mixed"),
        ({"stack": "plain-torch"}, {"dtype": "float32"}, "fp32"),
        ({"stack": "plain-torch"}, {"dtype": "bfloat16", "model_name_or_path": "mine"}, "bf16"),
        ({"stack": "plain-torch"}, {"torch_dtype": "bfloat16"}, "bf16"),
        ({"stack": "hf-trainer"}, {"dtype": "bfloat16"}, "bf16"),
    ],
)
def test_a_loop_of_one_s_own_casts_to_its_dtype(
    tmp_path: Path, memory: dict[str, str], hyperparameters: dict[str, str], precision: str
) -> None:
    """nanoGPT's dtype is autocast over fp32 weights; transformers' is what the weights are loaded in."""
    model = {"model": "meta-llama/Llama-3.2-1B"}
    assert workload_of(tmp_path, model | memory, hyperparameters).precision == precision


def test_weights_of_fp16_are_not_planned_and_it_is_said(tmp_path: Path) -> None:
    model = {"model": "meta-llama/Llama-3.2-1B", "stack": "hf-trainer"}
    assert has(workload_of(tmp_path, model, {"torch_dtype": "float16"}), "training weights of fp16 is not planned")


# The tables


def test_each_name_is_documented() -> None:
    page = (ROOT / "docs/job-file.md").read_text(encoding="utf-8")
    names = [*NAMES, *SIZES, *UNCOUNTED]
    assert [name for name in names if f"`{name}`" not in page and f"`{name}:" not in page] == []


def test_each_name_is_of_a_field() -> None:
    fields = {*Memory.model_fields, "workers", "prefetch"}
    assert {known.field for known in NAMES.values()} <= fields


def test_a_search_and_a_remedy_find_the_names(tmp_path: Path) -> None:
    yolo = load_job(str(path_of(tmp_path, YOLO, {"workers": 8})))
    assert name_of(yolo, "workers") == "workers"
    assert [name for name in ("batch", "imgsz", "workers", "rank", "resolution") if is_read(yolo, name)] == [
        "batch", "imgsz", "workers",
    ]  # fmt: skip


def test_a_change_is_advised_in_the_words_of_the_script(tmp_path: Path) -> None:
    given = {"flash_attn": "sdpa", "bf16": True, "optimizer": "adamw_torch", "use_gradient_checkpointing": False}
    job = load_job(str(path_of(tmp_path, {**LLAMA, "attention": None}, given)))
    texts = [change.text for change in changes_of(job, read(job))]
    for text in (
        "hyperparameters.flash_attn: fa2",
        "hyperparameters.optimizer: adamw_8bit",
        "hyperparameters.use_gradient_checkpointing: true",
    ):
        assert text in texts


@pytest.mark.parametrize("memory", [{**LLAMA, "stack": "plain-torch"}, RESNET, SDXL])
def test_a_precision_and_an_optimizer_that_nothing_names_are_assumptions(
    tmp_path: Path, memory: dict[str, Any]
) -> None:
    silent = workload_of(tmp_path, memory, {"batch_size": 4})
    assert (silent.precision, silent.optimizer) == ("fp32", "adamw")
    assert has(silent, "no precision is given", "fp32")
    assert has(silent, "no optimizer is given", "adamw")
    given = workload_of(tmp_path, {**memory, "precision": "fp32"}, {"batch_size": 4, "optimizer": "adamw"})
    assert given.precision == silent.precision
    assert not has(given, "no precision is given")
    assert not has(given, "no optimizer is given")


def test_trees_have_no_precision(tmp_path: Path) -> None:
    assert not has(workload_of(tmp_path, TABLE, {}), "no precision is given")
