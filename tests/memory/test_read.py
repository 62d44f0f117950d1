"""From a job file to a workload: names, hyperparameters, contradictions, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from job_files import write_job
from sagefit.errors import INVALID, SagefitError
from sagefit.job import Job, load_job
from sagefit.job.other_names import KNOBS
from sagefit.memory.knobs import name_of
from sagefit.memory.read import read
from sagefit.memory.workload import GIB, Measured, Tabular, Transformer, Vision
from sagefit.paths import ROOT
from sagefit.planning import plan

PYTORCH = {"framework": "pytorch", "version": "2.6"}  # it has images for GPU instances
LLAMA = {
    "family": "transformer",
    "params": 6.74e9,
    "layers": 32,
    "hidden_size": 4096,
    "heads": 32,
    "kv_heads": 32,
    "ffn_size": 11008,
    "vocab_size": 32000,
}


def job(folder: Path, memory: dict[str, Any] | None, hyperparameters: dict[str, Any] | None = None) -> Job:
    return load_job(str(write_job(folder, {"memory": memory, "hyperparameters": hyperparameters or {"epochs": 1}})))


def refusal(folder: Path, memory: dict[str, Any], hyperparameters: dict[str, Any] | None = None) -> str:
    with pytest.raises(SagefitError) as caught:
        read(job(folder, memory, hyperparameters))
    assert caught.value.exit_code == INVALID
    return caught.value.message


def test_the_example_of_the_contract(tmp_path: Path) -> None:
    memory = {
        "model": "bert-large-uncased",
        "method": "full",
        "precision": "bf16-mixed",
        "optimizer": "adamw",
        "micro_batch": 32,
        "sequence_length": 512,
        "gradient_checkpointing": False,
        "attention": "sdpa",
        "sharding": "none",
        "world_size": None,
        "stack": "hf-trainer",
        "loader": {"workers": 4, "prefetch": 2, "sample_bytes": 4096},
        "dataset": {"size_gib": 2, "in_memory": False},
    }
    hyperparameters = {"epochs": 3, "per_device_train_batch_size": 32, "gradient_accumulation_steps": 4}
    workload = read(job(tmp_path, memory, hyperparameters))
    assert isinstance(workload.model, Transformer)
    assert workload.model.name == "google-bert/bert-large-uncased"
    assert (workload.micro_batch, workload.accumulation, workload.precision) == (32, 4, "bf16-mixed")
    assert (workload.workers, workload.prefetch, workload.sample_bytes) == (4, 2, 4096)
    assert (workload.dataset_gib, workload.dataset_in_memory) == (2, False)


def test_without_a_memory_block_nothing_is_known(tmp_path: Path) -> None:
    workload = read(job(tmp_path, None))
    assert workload.model is None
    assert workload.notes == ("the job file has no memory block",)


def test_without_a_model_the_rest_is_read(tmp_path: Path) -> None:
    workload = read(job(tmp_path, {"loader": {"workers": 3}}))
    assert workload.model is None
    assert workload.workers == 3
    assert "memory.model is not given" in workload.notes


@pytest.mark.parametrize(
    ("hyperparameters", "field", "value"),
    [
        ({"per_device_train_batch_size": "16"}, "micro_batch", 16),
        ({"per-device-train-batch-size": 16}, "micro_batch", 16),
        ({"batch-size": 16}, "micro_batch", 16),
        ({"batch_size": "8", "per_device_train_batch_size": 8}, "micro_batch", 8),
        ({"gradient_accumulation_steps": 4.0}, "accumulation", 4),
        ({"per_device_eval_batch_size": 64}, "evaluation_batch", 64),
        ({"gradient_checkpointing": "true"}, "gradient_checkpointing", True),
        ({"gradient_checkpointing": "False"}, "gradient_checkpointing", False),
        ({"activation_checkpointing": "selective"}, "gradient_checkpointing", True),
        ({"activation_checkpointing": "selective"}, "checkpointing", "selective"),
        ({"gradient_checkpointing": True}, "checkpointing", "default"),
        ({"max_seq_length": 2048}, "sequence_length", 2048),
        ({"bf16": True}, "precision", "bf16-mixed"),
        ({"fp16": "true", "bf16": "false"}, "precision", "fp16-mixed"),
        ({"mixed_precision": "no"}, "precision", "fp32"),
        ({"optim": "adamw_bnb_8bit"}, "optimizer", "adamw-8bit"),
        ({"attn_implementation": "flash_attention_2", "bf16": True}, "attention", "flash"),
        ({"dataloader_num_workers": 0}, "workers", 0),
        ({"dataloader_prefetch_factor": 4}, "prefetch", 4),
        ({"epochs": 3}, "precision", "fp32"),
    ],
)
def test_hyperparameters_are_known_by_their_names(
    tmp_path: Path, hyperparameters: dict[str, Any], field: str, value: object
) -> None:
    assert getattr(read(job(tmp_path, {"model": "gpt2"}, hyperparameters)), field) == value


def test_what_is_taken_for_granted_is_said(tmp_path: Path) -> None:
    notes = "\n".join(read(job(tmp_path, {"model": "bert-base", "method": "lora"}, {"optim": "muon"})).notes)
    for said in ("batch size", "taken as 1", "sequence length", "lora_rank", "head: lm", "'muon'"):
        assert said in notes


def test_a_contradiction_names_both_places(tmp_path: Path) -> None:
    message = refusal(tmp_path, {"model": "gpt2", "micro_batch": 8}, {"per_device_train_batch_size": 16})
    assert "memory.micro_batch: is 8" in message
    assert "hyperparameters.per_device_train_batch_size (line " in message
    assert "is 16" in message
    assert "digits.yaml:" in message


@pytest.mark.parametrize(
    ("memory", "hyperparameters"),
    [
        ({"precision": "fp32"}, {"bf16": True}),
        ({"precision": "bf16-mixed"}, {"fp16": True}),
        ({"gradient_checkpointing": False}, {"gradient_checkpointing": True}),
        ({"loader": {"workers": 2}}, {"dataloader_num_workers": 8}),
        ({"optimizer": "lion"}, {"optim": "adamw_torch"}),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any]) -> None:
    assert "keep one of them" in refusal(tmp_path, {"model": "gpt2", **memory}, hyperparameters)


@pytest.mark.parametrize(
    ("memory", "hyperparameters"),
    [
        ({"micro_batch": 8}, {"per_device_train_batch_size": "8"}),
        ({"precision": "bf16"}, {"bf16": True}),
        ({"gradient_checkpointing": True}, {"gradient_checkpointing": "true"}),
    ],
)
def test_the_same_said_twice_is_no_contradiction(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any]
) -> None:
    read(job(tmp_path, {"model": "gpt2", **memory}, hyperparameters))


def test_an_attempt_overrides_the_memory_block(tmp_path: Path) -> None:
    own = {"per_device_train_batch_size": 16}
    loaded = job(tmp_path, {"model": "gpt2", "micro_batch": 16}, own)
    changed = read(loaded, {**own, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 4})
    assert (changed.micro_batch, changed.accumulation) == (4, 4)
    assert read(loaded).micro_batch == 16


@pytest.mark.parametrize(
    ("hyperparameters", "rule"),
    [
        ({"per_device_train_batch_size": "many"}, "'many' is no whole number from 1 to 10000000"),
        ({"per_device_train_batch_size": 0}, "0 is no whole number"),
        ({"per_device_train_batch_size": 1.5}, "1.5 is no whole number"),
        ({"per_device_train_batch_size": 10**9}, "is no whole number from 1"),
        ({"max_seq_length": -1}, "-1 is no whole number"),
        ({"gradient_checkpointing": "maybe"}, "neither true nor false"),
        ({"bf16": True, "fp16": True}, "exclude each other"),
    ],
)
def test_hyperparameters_that_mean_nothing_are_refused(
    tmp_path: Path, hyperparameters: dict[str, Any], rule: str
) -> None:
    message = refusal(tmp_path, {"model": "gpt2"}, hyperparameters)
    assert f"hyperparameters.{next(iter(hyperparameters))}: " in message
    assert rule in message
    assert "memory.knobs." in message


def test_knobs_of_the_job_come_first(tmp_path: Path) -> None:
    loaded = job(
        tmp_path, {"model": "gpt2", "knobs": {"micro_batch": "bs", "in_memory": "cache"}}, {"bs": 4, "cache": True}
    )
    workload = read(loaded)
    assert workload.micro_batch == 4
    assert workload.dataset_in_memory is True
    assert name_of(loaded, "micro_batch") == "bs"
    assert name_of(loaded, "accumulation") is None


def test_a_remedy_finds_the_spelling_of_the_job(tmp_path: Path) -> None:
    loaded = job(tmp_path, {"model": "gpt2"}, {"Batch-Size": 8})
    assert name_of(loaded, "micro_batch") == "Batch-Size"
    assert name_of(loaded, "gradient_checkpointing") is None


def test_every_default_name_belongs_to_one_knob() -> None:
    names = [name for spelt in KNOBS.values() for name in spelt]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("meta-llama/Llama-3.1-8B", Transformer),
        ("LLAMA-3.1-8B", Transformer),
        (LLAMA, Transformer),
        ("resnet50", Vision),
        ("google/vit-base-patch16-224", Vision),
        ({"family": "convnet", "name": "resnet50", "image_size": 320}, Vision),
        ({"family": "vision", "name": "vit_base_patch16_224"}, Vision),
        ({"family": "tabular", "library": "xgboost", "rows": 1000, "columns": 10}, Tabular),
        ({"family": "measured", "gpu_gib": 14.2, "host_gib": 30}, Measured),
    ],
)
def test_models_of_every_kind(tmp_path: Path, model: Any, family: type) -> None:
    assert isinstance(read(job(tmp_path, {"model": model})).model, family)


def test_an_image_size_is_kept_or_left_to_the_table(tmp_path: Path) -> None:
    given = read(job(tmp_path, {"model": {"family": "convnet", "name": "resnet50", "image_size": 320}})).model
    assert given == Vision("resnet50", 320)
    assert read(job(tmp_path, {"model": "resnet50"})).model == Vision("resnet50", 0)


def test_rows_and_columns_are_the_size_of_a_table(tmp_path: Path) -> None:
    table = {"family": "tabular", "library": "xgboost", "rows": 2**20, "columns": 1024, "dtype_bytes": 4}
    assert read(job(tmp_path, {"model": table})).dataset_gib == 2**20 * 1024 * 4 / GIB


def test_a_size_beside_rows_and_columns_may_be_rounded(tmp_path: Path) -> None:
    for size in (8.1, 10, 11.9):
        assert read(job(tmp_path, {"model": TABLE, "dataset": {"size_gib": size}})).dataset_gib == 10


def test_a_knob_may_be_what_only_an_attempt_sets(tmp_path: Path) -> None:
    attempts = [{"name": "a", "instance_type": "ml.g5.xlarge", "hyperparameters": {"bs": 4}}]
    changes = {"memory": {"model": "gpt2", "knobs": {"micro_batch": "bs"}}, "attempts": attempts, "image": PYTORCH}
    loaded = load_job(str(write_job(tmp_path, changes)))
    assert read(loaded, {"bs": 4}).micro_batch == 4


def test_a_config_file_beside_the_job(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    config = {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "max_position_embeddings": 512,
        "vocab_size": 30522,
    }
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for reference in ("model/config.json", "./model"):
        model = read(job(tmp_path, {"model": reference})).model
        assert isinstance(model, Transformer)
        assert model.params == pytest.approx(109_482_240, rel=0.001)
        assert model.head == "classification", "architectures names the pre-training class, not the job"


def test_the_head_is_what_the_job_says(tmp_path: Path) -> None:
    for model, head, expected in (
        ("bert-base", None, "classification"),
        ("bert-base", "lm", "lm"),
        ("gpt2", None, "lm"),
        ("gpt2", "classification", "classification"),
    ):
        found = read(job(tmp_path, {"model": model, "head": head} if head else {"model": model})).model
        assert isinstance(found, Transformer)
        assert found.head == expected


def test_whisper_always_hears_thirty_seconds_and_writes_what_the_job_says(tmp_path: Path) -> None:
    workload = read(job(tmp_path, {"model": "openai/whisper-small", "sequence_length": 128}))
    assert (workload.encoder_length, workload.sequence_length) == (1500, 128)
    assert [note for note in workload.notes if "1500" in note or "128" in note] == [
        "every sample has 1500 tokens in the encoder, and 128 (sequence_length) in the decoder"
    ]
    assert read(job(tmp_path, {"model": "openai/whisper-small"})).sequence_length == 448
    assert read(job(tmp_path, {"model": "t5-base", "sequence_length": 128})).encoder_length is None


WHISPER = {
    "model_type": "whisper",
    "is_encoder_decoder": True,
    "d_model": 768,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "num_hidden_layers": 12,
    "decoder_attention_heads": 12,
    "decoder_ffn_dim": 3072,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "vocab_size": 51865,
}


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "field"),
    [
        ({"sequence_length": 449}, {}, "memory.sequence_length"),
        ({}, {"max_length": 1500}, "hyperparameters.max_length"),
    ],
)
def test_whisper_writes_no_more_than_its_decoder_has_positions_for(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], field: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(WHISPER), encoding="utf-8")
    for model in ("openai/whisper-small", "config.json"):
        message = refusal(tmp_path, {"model": model, **memory}, hyperparameters)
        assert f"{field}: " in message
        assert "448" in message


@pytest.mark.parametrize(
    ("model", "most"),
    [("bert-base", 512), ("gpt2", 1024), ("facebook/bart-base", 1026), ("t5-base", None), ("llama-2-7b", None)],
)
def test_a_sequence_that_a_model_has_no_positions_for_is_noted(tmp_path: Path, model: str, most: int | None) -> None:
    def noted(length: int) -> bool:
        return "has positions for" in str(read(job(tmp_path, {"model": model, "sequence_length": length})).notes)

    assert noted(5000) == (most is not None)
    assert most is None or not noted(most)


def test_what_a_config_says_beside_its_numbers_is_noted(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
        "quantization_config": {"load_in_4bit": True},
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    full = str(read(job(tmp_path, {"model": "config.json", "sequence_length": 8192})).notes)
    assert "4-bit quantization_config is ignored, as memory.method is full" in full
    assert "8192 tokens, and llama has positions for 4096" in full
    assert "ignored" not in str(read(job(tmp_path, {"model": "config.json", "method": "qlora"})).notes)
    (tmp_path / "config.json").write_text(json.dumps(config | {"rope_scaling": {"factor": 4.0}}), encoding="utf-8")
    assert "positions" not in str(read(job(tmp_path, {"model": "config.json", "sequence_length": 8192})).notes)


@pytest.mark.parametrize(
    ("one", "other", "knob"),
    [
        ({"per_device_train_batch_size": 16}, {"batch_size": 32}, "micro_batch"),
        ({"max_seq_length": 512}, {"max_length": "1024"}, "sequence_length"),
        ({"gradient_checkpointing": True}, {"activation_checkpointing": "false"}, "gradient_checkpointing"),
    ],
)
def test_two_names_of_one_number_must_agree(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], knob: str
) -> None:
    (name, value), (twin, _) = *one.items(), *other.items()
    message = refusal(tmp_path, {"model": "gpt2"}, one | other)
    lines = (tmp_path / "digits.yaml").read_text(encoding="utf-8").splitlines()
    line = {field: lines.index(next(text for text in lines if f"  {field}:" in text)) + 1 for field in (name, twin)}
    assert f"digits.yaml:{line[name]}: hyperparameters.{name}: is {str(value).lower()}, and " in message
    assert f"hyperparameters.{twin} (line {line[twin]}) is " in message
    assert f"memory.knobs.{knob}" in message
    read(job(tmp_path, {"model": "gpt2", "knobs": {knob: twin}}, one | other))
    read(job(tmp_path, {"model": "gpt2"}, one | {twin: str(value)}))


def test_a_global_batch_beside_the_micro_batch_is_no_contradiction(tmp_path: Path) -> None:
    both = {"per_device_train_batch_size": 8, "batch_size": 64}
    assert read(job(tmp_path, {"model": "gpt2", "micro_batch": 8}, both)).micro_batch == 8
    knobs = {"micro_batch": "per_device_train_batch_size"}
    assert read(job(tmp_path, {"model": "gpt2", "knobs": knobs}, both)).micro_batch == 8


def test_an_attempt_may_set_the_name_that_counts(tmp_path: Path) -> None:
    own = {"per_device_train_batch_size": 16, "batch_size": 16}
    loaded = job(tmp_path, {"model": "gpt2"}, own)
    assert read(loaded, own | {"per_device_train_batch_size": 8}).micro_batch == 8
    with pytest.raises(SagefitError, match="both are names of micro_batch"):
        read(loaded, own | {"batch_size": 8})


def test_a_wrong_number_of_an_attempt_is_reported_there(tmp_path: Path) -> None:
    attempts = [
        {"name": "a", "instance_type": "ml.g5.xlarge"},
        {"name": "b", "instance_type": "ml.g5.xlarge", "hyperparameters": {"batch_size": "many"}},
    ]
    changes = {"memory": {"model": "gpt2"}, "hyperparameters": {"batch_size": 8}, "attempts": attempts}
    path = write_job(tmp_path, changes | {"image": PYTORCH})
    with pytest.raises(SagefitError) as caught:
        plan(load_job(str(path)))
    line = next(n for n, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if "many" in text)
    assert f"digits.yaml:{line}: attempts[1].hyperparameters.batch_size: 'many' is no whole number" in str(caught.value)


@pytest.mark.parametrize(
    ("memory", "hyperparameters", "field"),
    [
        ({"attention": "flash"}, {}, "memory.attention"),
        ({"attention": "flash"}, {"bf16": False}, "memory.attention"),
        ({}, {"attn_implementation": "flash_attention_2"}, "hyperparameters.attn_implementation"),
    ],
)
def test_flash_attention_needs_a_precision_that_it_has(
    tmp_path: Path, memory: dict[str, Any], hyperparameters: dict[str, Any], field: str
) -> None:
    message = refusal(tmp_path, {"model": "gpt2", **memory}, hyperparameters)
    assert f"{field}: FlashAttention computes in fp16 and bf16 only" in message
    assert read(job(tmp_path, {"model": "gpt2", **memory}, hyperparameters | {"bf16": True})).attention == "flash"


@pytest.mark.parametrize("kind", ["full", "selective"])
def test_which_kind_of_checkpointing(tmp_path: Path, kind: str) -> None:
    loaded = job(tmp_path, {"model": "gpt2", "gradient_checkpointing": kind}, {"gradient_checkpointing": True})
    workload = read(loaded)
    assert (workload.gradient_checkpointing, workload.checkpointing) == (True, kind)
    without = read(loaded, {"gradient_checkpointing": False})
    assert (without.gradient_checkpointing, without.checkpointing) == (False, "default")
    refused = refusal(tmp_path, {"model": "gpt2", "gradient_checkpointing": kind}, {"gradient_checkpointing": False})
    assert "keep one of them" in refused


def test_a_trace_may_say_what_is_trained(tmp_path: Path) -> None:
    trace = {"function": "train.py:build"}
    path = write_job(tmp_path, {"memory": {"trace": trace}, "attempts": "auto", "resources.instance_type": "auto"})
    with pytest.raises(SagefitError) as caught:
        plan(load_job(str(path)))
    assert caught.value.exit_code == INVALID
    assert "to choose an instance, Sagefit has to know what is trained" in caught.value.message
    assert "sagefit trace" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("bert-larg-uncased", "bert-large-uncased"),
        ("meta-llama/Llama-2-7b-hff", "meta-llama/llama-2-7b-hf"),
        ("resnett50", "resnet50"),
        ("xyzzy", "its config.json"),
        ("", "its config.json"),
        pytest.param("x" * 5000, "its config.json", id="long"),
        ({"family": "vision", "name": "resnett50"}, "resnet50"),
    ],
)
def test_an_unknown_name_suggests_a_known_one(tmp_path: Path, model: Any, near: str) -> None:
    message = refusal(tmp_path, {"model": model})
    assert "digits.yaml:" in message
    assert "no model is known as" in message
    assert near in message
    assert "give the path of its config.json, or its numbers" in message


def test_a_copy_under_the_same_name_is_the_model_itself(tmp_path: Path) -> None:
    copied, own = (
        read(job(tmp_path, {"model": name})) for name in ("unsloth/Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B")
    )
    assert copied.model == own.model
    assert any(note.startswith("memory.model unsloth/Meta-Llama-3.1-8B is taken as") for note in copied.notes)
    assert "no model is known" in refusal(tmp_path, {"model": "somebody/Meta-Llama-3.1-8B"})


@pytest.mark.parametrize(
    ("name", "own", "bits"),
    [
        ("unsloth/Llama-3.2-1B-bnb-4bit", "meta-llama/Llama-3.2-1B", True),
        ("unsloth/Qwen3-8B-unsloth-bnb-4bit", "Qwen/Qwen3-8B", True),
        ("unsloth/Llama-3.2-1B-Instruct-bnb-8bit", "meta-llama/Llama-3.2-1B-Instruct", False),
        ("Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-4B", False),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-30B-A3B", False),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", "Qwen/Qwen2.5-Coder-7B", False),
        ("unsloth/Qwen3-4B-Instruct-2507-unsloth-bnb-4bit", "Qwen/Qwen3-4B", True),
    ],
)
def test_a_later_or_quantized_checkpoint_has_the_shapes_of_its_model(
    tmp_path: Path, name: str, own: str, bits: bool
) -> None:
    found = read(job(tmp_path, {"model": name}))
    assert found.model == read(job(tmp_path, {"model": own})).model
    assert any(note.startswith(f"memory.model {name} is taken as") for note in found.notes)
    assert any("4-bit quantization_config is ignored" in note for note in found.notes) is bits
    quiet = read(job(tmp_path, {"model": name, "method": "qlora"}))
    assert not any("quantization_config" in note for note in quiet.notes)


@pytest.mark.parametrize("name", ["somebody/Qwen3-8B-bnb-4bit", "Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen9-8B-Instruct"])
def test_a_model_that_only_looks_like_one_is_not_taken_for_it(tmp_path: Path, name: str) -> None:
    assert "no model is known" in refusal(tmp_path, {"model": name})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "holds no mapping"),
        (b'{"model_type": "resnet", "hidden_sizes": [1]}', "none of hidden_size"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, content: bytes | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    message = refusal(tmp_path, {"model": "config.json"})
    assert "memory.model: " in message
    assert reason in message


TABLE = {"family": "tabular", "library": "xgboost", "rows": 2**27, "columns": 10}  # 10 GiB


def changed(**fields: Any) -> dict[str, Any]:
    return {"model": {**LLAMA, **fields}}


@pytest.mark.parametrize(
    ("memory", "field", "rule", "knob"),
    [
        (changed(params=float("nan")), "memory.model.params", "no finite number", "write a number"),
        (changed(params=float("inf")), "memory.model.params", "no finite number", "write a number"),
        (changed(params=0), "memory.model.params", "must be above 0", "raise it"),
        (
            changed(params=7),
            "memory.model.params",
            "7 parameters are fewer than 32 layers",
            "7000000000, if these are billions",
        ),
        (changed(params="7B"), "memory.model.params", "must be a number, and '7B' is given", "write 7000000000"),
        (changed(params=1e15), "memory.model.params", "above the limit", "lower it"),
        (changed(layers=10_001), "memory.model.layers", "above the limit of 10000", "lower it"),
        (changed(layers=-1), "memory.model.layers", "below the least value of 1", "raise it"),
        (changed(heads=33, kv_heads=33), "memory.model.heads", "hidden_size (4096) must be a multiple of", "head_dim"),
        (changed(kv_heads=5), "memory.model.kv_heads", "heads (32) must be a multiple of kv_heads (5)", "correct one"),
        (changed(experts_per_token=2), "memory.model.experts_per_token", "cannot visit 2 of 1", "raise experts"),
        (changed(encoder_layers=2), "memory.model.encoder_layers", "all in layers", "encoder-decoder"),
        (changed(hidden=1), "memory.model.hidden", "unknown key", "did you mean hidden_size"),
        (changed(experts=8), "memory.model.experts", "how many of 8 experts", "experts_per_token"),
        ({"model": {"family": "rnn"}}, "memory.model.family", "'rnn' is not one of 'transformer', 'vision'", "choose"),
        ({"model": {"family": "transfomer"}}, "memory.model.family", "not one of", "did you mean transformer?"),
        ({"model": {"name": "resnet50"}}, "memory.model", "has no 'family'", "add it"),
        (
            {"model": {"family": "vision", "image_size": 0, "name": "resnet50"}},
            "memory.model.image_size",
            "below",
            "raise",
        ),
        (
            {"model": {"family": "tabular", "library": "xgboost"}},
            "memory.model",
            "size of the table",
            "dataset.size_gib",
        ),
        (
            {"model": {"family": "tabular", "library": "xgboost", "rows": 5}},
            "memory.model",
            "give the size together",
            "both or none",
        ),
        (
            {"model": TABLE, "dataset": {"size_gib": 12.5}},
            "memory.dataset.size_gib",
            "is 12.5 GiB, and memory.model.rows x columns x dtype_bytes",
            "keep one of them",
        ),
        ({"model": {"family": "measured", "host_gib": float("nan")}}, "memory.model.host_gib", "finite", "write"),
        ({"sequence_length": 10**8 + 1}, "memory.sequence_length", "above the limit", "lower it"),
        ({"micro_batch": 10**7 + 1}, "memory.micro_batch", "above the limit", "lower it"),
        ({"head_room": 0.95}, "memory.head_room", "above the limit of 0.9", "lower it"),
        ({"lora_rank": 8}, "memory.lora_rank", "method is full", "method: lora"),
        ({"attention": "flash", "precision": "fp32"}, "memory.attention", "fp16 and bf16 only", "sdpa"),
        ({"cpu_offload": "parameters", "sharding": "zero2"}, "memory.cpu_offload", "sharding is zero2", "zero3"),
        ({"cpu_offload": "optimizer", "stack": "deepspeed"}, "memory.cpu_offload", "sharding is none", "zero1"),
        ({"knobs": {"colour": "x"}}, "memory.knobs.colour", "is not one of", ""),
        ({"knobs": {"micro_batch": "epoch"}}, "memory.knobs.micro_batch", "no", "did you mean epochs?"),
        (
            {"knobs": {"micro_batch": "bs"}},
            "memory.knobs.micro_batch",
            "neither the job nor an attempt",
            "add hyperparameters.bs",
        ),
        ({"sharding": "full_shard"}, "memory.sharding", "'full_shard' is not one of", "did you mean fsdp?"),
        ({"sharding": "fsdp", "stack": "deepspeed"}, "memory.sharding", "stack deepspeed does not train", "zero1"),
        ({"sharding": "fsdp", "stack": "megatron"}, "memory.sharding", "stack megatron does not train", "zero1"),
        (
            {"gradient_checkpointing": "ful"},
            "memory.gradient_checkpointing",
            "true, false, 'full' or 'selective'",
            "full?",
        ),
        ({"method": "qlora", "stack": "torchtitan"}, "memory.method", "no 4-bit", "method: lora"),
    ],
)
def test_impossible_memory_blocks_are_refused(
    tmp_path: Path, memory: dict[str, Any], field: str, rule: str, knob: str
) -> None:
    with pytest.raises(SagefitError) as caught:
        job(tmp_path, memory)
    assert f"{field}: " in caught.value.message
    assert rule in caught.value.message
    assert knob in caught.value.message


def test_a_contradiction_in_the_numbers_is_a_note(tmp_path: Path) -> None:
    workload = read(job(tmp_path, changed(params=13e9)))
    assert any("memory.model.params is 1.3e+10" in note for note in workload.notes)


def test_the_names_of_hyperparameters_are_documented() -> None:
    page = (ROOT / "docs/job-file.md").read_text(encoding="utf-8")
    assert [name for spelt in KNOBS.values() for name in spelt if f"`{name}`" not in page] == []
