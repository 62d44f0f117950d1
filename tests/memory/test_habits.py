"""What is taken where nothing says it: said in one line, by the habits of frameworks, and never against a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.job import load_job
from sagefit.memory import Workload
from sagefit.memory.lookalikes import remarks
from sagefit.memory.read import read

LLAMA = {"model": "meta-llama/Llama-3.2-1B", "stack": "hf-trainer"}
RESNET = {"model": "resnet50"}
SDXL = {"model": "stabilityai/stable-diffusion-xl-base-1.0"}
UNKNOWN = {**LLAMA, "stack": "unknown"}
LORA = {**LLAMA, "method": "lora"}


def path_of(folder: Path, memory: dict[str, Any] | None, hyperparameters: dict[str, Any], **more: Any) -> Path:
    image = {"framework": "pytorch", "version": "2.6"}
    return write_job(folder, {"memory": memory, "hyperparameters": hyperparameters, "image": image, **more})


def workload_of(folder: Path, memory: dict[str, Any] | None, hyperparameters: dict[str, Any]) -> Workload:
    return read(load_job(str(path_of(folder, memory, hyperparameters))))


def has(workload: Workload, *words: str) -> bool:
    return any(all(word in note for word in words) for note in workload.notes)


def line_of(folder: Path, memory: dict[str, Any], hyperparameters: dict[str, Any]) -> str:
    notes = workload_of(folder, memory, hyperparameters).notes
    found = [note for note in notes if note.startswith("nothing says otherwise")]
    assert len(found) <= 1
    return found[0] if found else ""


def test_every_default_that_decides_is_in_one_line(tmp_path: Path) -> None:
    line = line_of(tmp_path, LLAMA, {})
    for taken in ("method: full", "objective: supervised", "no gradient_checkpointing", "sdpa", "no evaluation_batch"):
        assert taken in line


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "word"),
    [
        ({"method": "full"}, {}, "method: full"),
        ({}, {"use_peft": False}, "method: full"),
        ({}, {"load_in_4bit": True}, "method: full"),
        ({"objective": "supervised"}, {}, "objective"),
        ({}, {"stage": "sft"}, "objective"),
        ({"gradient_checkpointing": False}, {}, "gradient_checkpointing"),
        ({}, {"gradient_checkpointing": False}, "gradient_checkpointing"),
        ({}, {"finetuning_type": "full"}, "gradient_checkpointing"),
        ({"attention": "sdpa"}, {}, "attention"),
        ({"evaluation_batch": 4}, {}, "evaluation_batch"),
        ({}, {"do_eval": True}, "evaluation_batch"),
        ({}, {"eval_strategy": "no"}, "evaluation_batch"),
    ],
)
def test_what_is_said_is_no_default(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], word: str
) -> None:
    assert word not in line_of(tmp_path, {**LLAMA, **memory}, hyperparameters)


def test_only_language_models_have_an_objective_and_attention_in_the_line(tmp_path: Path) -> None:
    for memory in (RESNET, SDXL):
        line = line_of(tmp_path, memory, {})
        assert "method: full" in line
        assert "objective" not in line
        assert "attention" not in line


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "batch", "words"),
    [
        (LLAMA, {}, 8, "taken as 8, the Trainer's default"),
        ({"model": LLAMA["model"]}, {"use_liger_kernel": True}, 8, "taken as 8, the Trainer's default"),
        (UNKNOWN, {}, 1, "taken as 1"),
        ({**LLAMA, "stack": "ms-swift"}, {}, 1, "taken as 1"),
        (LLAMA, {"per_device_train_batch_size": 2}, 2, ""),
    ],
)
def test_the_batch_that_nobody_gives(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], batch: int, words: str
) -> None:
    workload = workload_of(tmp_path, memory, hyperparameters)
    assert workload.micro_batch == batch
    assert has(workload, "no batch size is given", words) == bool(words)


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "batch"),
    [
        (LLAMA, {"eval_strategy": "steps"}, 8),
        (LLAMA, {"evaluation_strategy": "epoch"}, 8),
        (LLAMA, {"do_eval": "true"}, 8),
        (LLAMA, {"eval_strategy": "steps", "per_device_eval_batch_size": 2}, 2),
        ({**LLAMA, "evaluation_batch": 3}, {"do_eval": True}, 3),
        (LLAMA, {"eval_strategy": "no", "do_eval": False}, None),
        (LLAMA, {}, None),
        (UNKNOWN, {"do_eval": True}, None),
        (LLAMA, {"base_model": "x", "micro_batch_size": 2, "eval_strategy": "steps"}, 2),
    ],
)
def test_the_batch_of_an_evaluation_that_is_asked_for(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], batch: int | None
) -> None:
    workload = workload_of(tmp_path, memory, hyperparameters)
    assert workload.evaluation_batch == batch
    given = "per_device_eval_batch_size" in hyperparameters or "evaluation_batch" in memory
    assert has(workload, "without a batch for it: evaluation_batch is") == (batch is not None and not given)


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "base"),
    [
        (LLAMA, {"finetuning_type": "lora", "bf16": True}, "16-bit"),
        (LLAMA, {"finetuning_type": "lora", "pure_bf16": True}, "16-bit"),
        (LLAMA, {"adapter": "lora", "bf16": "auto"}, "16-bit"),
        (LLAMA, {"adapter": "lora", "fp16": True}, "16-bit"),
        (LLAMA, {"adapter": "lora", "bf16": False}, "default"),
        (LLAMA, {"adapter": "lora", "bf16": True, "torch_dtype": "float32"}, "fp32"),
        ({**LORA, "base_dtype": "fp32"}, {"adapter": "lora", "bf16": True}, "fp32"),
        (LORA, {"bf16": True}, "default"),
        (LLAMA, {"adapter": "lora", "load_in_8bit": True, "bf16": True}, "8-bit"),
    ],
)
def test_frameworks_that_load_frozen_weights_in_16_bits(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], base: str
) -> None:
    workload = workload_of(tmp_path, memory, hyperparameters)
    assert workload.base_dtype == base
    assert has(workload, "then loads frozen weights in 16 bits") == (base == "16-bit")


@pytest.mark.parametrize(
    ("hyperparameters", "objective"),
    [
        ({"rl": "dpo"}, "dpo"),
        ({"rl": "ipo"}, "dpo"),
        ({"rl": "kto"}, "kto"),
        ({"rl": "orpo"}, "orpo"),
        ({"rl": "simpo"}, "cpo"),
        ({"rl": "grpo"}, "grpo"),
        ({"stage": "dpo", "pref_loss": "sigmoid"}, "dpo"),
        ({"stage": "dpo", "pref_loss": "orpo"}, "orpo"),
        ({"stage": "dpo", "pref_loss": "simpo"}, "cpo"),
        ({"stage": "sft", "pref_loss": "orpo"}, "supervised"),
    ],
)
def test_words_for_objectives(tmp_path: Path, hyperparameters: dict[str, Any], objective: str) -> None:
    assert workload_of(tmp_path, LLAMA, hyperparameters).objective == objective


def test_an_objective_of_axolotl_that_nobody_knows_is_said(tmp_path: Path) -> None:
    assert has(workload_of(tmp_path, LLAMA, {"rl": "newest"}), "hyperparameters.rl", "newest", "not known")


def test_vllm_without_a_mode_is_taken_as_inside_of_the_trainer(tmp_path: Path) -> None:
    workload = workload_of(tmp_path, {**LLAMA, "objective": "grpo"}, {"use_vllm": True})
    assert (workload.sampler, workload.sampler_share) == ("vllm", 0.3)
    assert has(workload, "hyperparameters.use_vllm", "without vllm_mode", "memory.sampler: elsewhere")
    assert has(workload, "grpo compares with a frozen copy", "as with TRL 1 and no beta")
    server = workload_of(tmp_path, {**LLAMA, "objective": "grpo"}, {"use_vllm": True, "vllm_mode": "server"})
    assert server.sampler == "elsewhere"


# What names speak of


def said(folder: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], **more: Any) -> list[str]:
    job = load_job(str(path_of(folder, memory, hyperparameters, **more)))
    return job.told(list(remarks(job)))


def code_of(folder: Path, source: str, name: str) -> dict[str, Any]:
    (folder / source).mkdir(exist_ok=True)
    (folder / source / name).write_text("", encoding="utf-8")
    return {"source_dir": source, "entry_point": name}


@pytest.mark.parametrize(
    ("memory", "source", "name", "words"),
    [
        (SDXL, "src", "train_dreambooth_lora_sdxl.py", "give memory.method: lora"),
        (LLAMA, "src", "qlora.py", "give memory.method: qlora"),
        (LLAMA, "train-lora", "train.py", "code.source_dir: 'train-lora' speaks of lora"),
        (LLAMA, "src", "run_dpo.py", "give memory.objective: dpo"),
        (LLAMA, "src", "simpo.py", "give memory.objective: cpo"),
        ({**LLAMA, "method": "full"}, "src", "qlora.py", ""),
        ({**LLAMA, "objective": "supervised"}, "src", "dpo.py", ""),
        (SDXL, "src", "dpo.py", ""),
        (RESNET, "src", "lora.py", ""),
        (LLAMA, "src", "explore.py", ""),
    ],
)
def test_a_file_that_speaks_of_another_method(
    tmp_path: Path, memory: dict[str, Any], source: str, name: str, words: str
) -> None:
    found = said(tmp_path, memory, {}, code=code_of(tmp_path, source, name))
    assert len(found) == bool(words)
    assert all(words in each for each in found)


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "words"),
    [
        (LLAMA, {"num_generations": 8, "beta": 0.1}, "hyperparameters.num_generations: is of training such as grpo"),
        (LLAMA, {"max_completion_length": 64}, "grpo"),
        (LLAMA, {"use_vllm": True}, "grpo"),
        (LLAMA, {"use_vllm": False}, ""),
        (LLAMA, {"beta": 0.1}, "give memory.objective: dpo"),
        (LLAMA, {"max_prompt_length": 512}, "dpo"),
        ({**LLAMA, "objective": "kto"}, {"beta": 0.1}, ""),
        (LLAMA, {"rlhf_type": "dpo", "beta": 0.1}, ""),
        (RESNET, {"beta": 0.1}, ""),
    ],
)
def test_hyperparameters_that_only_another_objective_has(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], words: str
) -> None:
    found = said(tmp_path, memory, hyperparameters)
    assert len(found) == bool(words)
    assert all(words in each for each in found)


@pytest.mark.parametrize(
    ("memory", "name", "model", "differs"),
    [
        (LLAMA, "model_name_or_path", "meta-llama/Llama-3.1-8B", True),
        (LLAMA, "base_model", "NousResearch/Llama-3.2-1B", False),
        (LLAMA, "model_id", "meta-llama/Llama-3.2-1B-Instruct", False),
        (LLAMA, "model_name", "unsloth/Llama-3.2-1B-bnb-4bit", False),
        (LLAMA, "model_name_or_path", "someone/tuned-70b-chat", True),
        (LLAMA, "model_name_or_path", "someone/tuned", False),
        (LLAMA, "model_name_or_path", "/opt/ml/input/data/model-70b", False),
        (LLAMA, "model_name_or_path", "./llama-70b", False),
        (SDXL, "pretrained_model_name_or_path", "stable-diffusion-v1-5/stable-diffusion-v1-5", True),
        (SDXL, "pretrained_model_name_or_path", "stabilityai/stable-diffusion-xl-base-1.0", False),
        (RESNET, "model", "resnet101", True),
        (RESNET, "model", "timm/resnet50.a1_in1k", False),
        ({"model": "yolov8m"}, "model", "yolov8m.pt", False),
    ],
)
def test_two_names_of_the_model(tmp_path: Path, memory: dict[str, Any], name: str, model: str, differs: bool) -> None:
    found = [each for each in said(tmp_path, memory, {name: model}) if "which is what is predicted" in each]
    assert bool(found) == differs
    assert all(model in each and str(memory["model"]) in each for each in found)


@pytest.mark.parametrize("memory", [{"stack": "hf-trainer"}, None])
def test_a_model_that_only_the_script_is_told_is_proposed(tmp_path: Path, memory: dict[str, Any] | None) -> None:
    told = {"model_name_or_path": "meta-llama/Llama-3.2-1B"}
    workload = workload_of(tmp_path, memory, told)
    assert workload.model is None
    assert has(workload, "hyperparameters.model_name_or_path", "memory: { model: meta-llama/Llama-3.2-1B }")
    assert not has(workload_of(tmp_path, memory, {"model_name_or_path": "my/own"}), "my/own")
