"""What a DeepSpeed configuration says besides its stage, and how FSDP's layers are wrapped, in bytes of a rank."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_files import write_job
from sagefit.job import load_job
from sagefit.job.memory_model import Sharding
from sagefit.memory import GIB, Estimate, Placement, Transformer, Workload, predict
from sagefit.memory.deepspeed import Zero, zero_of
from sagefit.memory.read import read
from sagefit.memory.stacks import profile_of
from sagefit.memory.states import model_state
from sagefit.memory.transformer import sizes

P = 8_030_261_248
LLAMA_8B = Transformer(params=P, layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)
EMBEDDINGS = 2 * 128256 * 4096
FOUR = Placement(1, 4, "A100")
LORA = Workload(LLAMA_8B, method="lora", precision="bf16-mixed", sequence_length=1024, stack="hf-trainer")
FULL = replace(LORA, method="full", sharding="zero3")


def gpu(workload: Workload) -> Estimate:
    prediction = predict(workload, FOUR)
    assert prediction is not None
    assert prediction.gpu is not None
    return prediction.gpu


def part(workload: Workload, name: str) -> float:
    """Bytes."""
    return gpu(workload).parts.get(name, 0.0) * GIB


def told(folder: Path, hyperparameters: dict[str, Any] | None = None, **more: Any) -> Workload:
    """The workload of a job of a Hugging Face Trainer with these hyperparameters, and files in its code."""
    memory = {"model": "meta-llama/Llama-3.2-1B", "precision": "bf16-mixed", "micro_batch": 1, "stack": "hf-trainer"}
    changes = {"memory": memory | more.get("memory", {}), "hyperparameters": hyperparameters or None}
    path = write_job(folder, changes | {"environment": more.get("environment") or None})
    for name, content in more.get("files", {}).items():
        (folder / "src" / name).write_text(content, encoding="utf-8")
    return read(load_job(str(path)))


@pytest.mark.parametrize(
    ("settings", "zero"),
    [
        ({"stage": 2}, Zero(bucket=5e8)),
        ({"stage": 2, "reduce_bucket_size": 2e8, "overlap_comm": True}, Zero(bucket=2e8, buffers=2)),
        ({"stage": 2, "reduce_bucket_size": "2e8", "overlap_comm": "false"}, Zero(bucket=2e8)),
        ({"stage": 2, "contiguous_gradients": False, "reduce_bucket_size": "auto"}, Zero()),
        ({"stage": 3, "reduce_bucket_size": "auto"}, Zero(bucket=5e8, by_width=True)),
        ({"stage": 3, "stage3_max_live_parameters": 3e7, "sub_group_size": 1e6}, Zero(5e8, live=3e7, sub_group=1e6)),
        ({"stage": 3, "zero_hpz_partition_size": 8}, Zero(5e8, secondary=8)),
        ({"stage": 3, "zero_hpz_partition_size": 1, "stage3_max_live_parameters": "many"}, Zero(5e8)),
        ({"stage": 3, "sub_group_size": -1, "reduce_bucket_size": True}, Zero(5e8)),
    ],
)
def test_the_numbers_of_a_configuration(settings: dict[str, Any], zero: Zero) -> None:
    assert zero_of(settings) == zero


def test_auto_is_the_square_of_the_hidden_size() -> None:
    assert Zero(5e8, by_width=True).of(4096) == Zero(4096.0**2)
    assert Zero(2e8).of(4096) == Zero(2e8)


@pytest.mark.parametrize(("sharding", "buffers"), [("zero1", 1), ("zero2", 2)])
def test_buffers_are_made_in_full_however_little_is_trained(sharding: Sharding, buffers: int) -> None:
    """``reduce_bucket_size`` elements of the dtype of what is trained, twice where sending overlaps."""
    workload = replace(LORA, sharding=sharding, stack="deepspeed", zero=Zero(bucket=2e8, buffers=buffers))
    profile = profile_of("deepspeed", sharding)
    counts = sizes(LLAMA_8B, workload, profile)
    assert counts.adapters < 1e8
    assert model_state(workload, FOUR, profile, counts).buckets == 4 * buffers * 2e8
    assert model_state(replace(workload, zero=Zero()), FOUR, profile, counts).buckets == 4 * counts.adapters


def test_fewer_live_parameters_gather_less() -> None:
    few, many = (replace(FULL, zero=Zero(live=live)) for live in (1e8, 1e9))
    assert part(many, "communication") - part(few, "communication") == pytest.approx(2 * 9e8)


def test_the_second_copy_of_zero_plus_plus_is_shared_by_its_group() -> None:
    once, twice = (replace(FULL, zero=Zero(secondary=group)) for group in (0, 2))
    assert part(twice, "weights") - part(once, "weights") == pytest.approx(2 * P / 2)
    away = replace(twice, cpu_offload="parameters")
    assert part(away, "weights") == pytest.approx(2 * P / 2)
    assert part(replace(twice, sharding="fsdp"), "weights") == part(replace(once, sharding="fsdp"), "weights")


def test_a_smaller_group_of_the_optimizer_needs_less_at_its_step() -> None:
    few, many = (gpu(replace(FULL, zero=Zero(sub_group=size))).phases["step"] for size in (1e7, 1e9))
    assert few < many


def test_fsdp_without_wrapping_gathers_the_whole_model() -> None:
    workload = replace(LORA, method="full", sharding="fsdp", micro_batch=64)
    whole = replace(workload, wrapped=False)
    assert part(whole, "communication") >= 2 * (P - EMBEDDINGS) * 3 / 4
    assert gpu(whole).point > gpu(workload).point + 8
    assert gpu(replace(workload, sharding="none")).point >= gpu(whole).point


_ZERO = st.builds(
    Zero,
    bucket=st.one_of(st.none(), st.floats(0, 1e9)),
    buffers=st.sampled_from([1, 2]),
    live=st.floats(0, 1e10),
    sub_group=st.floats(0, 1e10),
    secondary=st.sampled_from([0, 8, 4]),
)
_MORE: dict[str, Callable[[Zero], Any]] = {
    "bucket": lambda zero: (zero.bucket or 0) * 2 + 5e8,
    "buffers": lambda _zero: 2,
    "live": lambda zero: zero.live * 2,
    "sub_group": lambda zero: zero.sub_group * 2,
    "secondary": lambda zero: 8 if zero.secondary == 0 else zero.secondary // 2,
}


@given(
    zero=_ZERO,
    field=st.sampled_from(sorted(_MORE)),
    sharding=st.sampled_from(["none", "zero1", "zero2", "zero3", "fsdp"]),
    method=st.sampled_from(["full", "lora", "qlora"]),
)
def test_more_of_any_number_never_needs_less(zero: Zero, field: str, sharding: Any, method: Any) -> None:
    workload = replace(LORA, sharding=sharding, method=method, zero=zero)
    changed: dict[str, Any] = {field: _MORE[field](zero)}
    more = replace(workload, zero=replace(zero, **changed))
    assert gpu(more).point >= gpu(workload).point - 1 / GIB
    assert gpu(replace(workload, wrapped=False)).point >= gpu(workload).point - 1 / GIB


def configured(folder: Path, more: dict[str, Any], **zero: Any) -> Workload:
    return told(folder, {"deepspeed": json.dumps({"zero_optimization": {"stage": 3, **zero}, **more})})


@pytest.mark.parametrize(
    ("more", "zero", "words"),
    [
        ({}, {"mics_shard_size": 4}, "mics_shard_size: weights are shared by fewer ranks"),
        ({}, {"zero_quantized_nontrainable_weights": True}, "frozen weights are kept in 8 bits"),
        ({}, {"offload_optimizer": {"device": "nvme"}}, "offload_optimizer to nvme: what is put on the disk"),
        ({}, {"offload_optimizer": {"device": "cpu", "ratio": 0.3}}, "what is not offloaded stays on the GPU"),
        ({"tensor_parallel": {"autotp_size": 2}}, {}, "each layer is parted over GPUs"),
        ({"data_types": {"grad_accum_dtype": "fp32"}}, {}, "gradients have 4 bytes"),
    ],
)
def test_what_is_not_planned_is_said(tmp_path: Path, more: dict[str, Any], zero: dict[str, Any], words: str) -> None:
    def said(workload: Workload) -> list[str]:
        return [note for note in workload.notes if note.endswith("which is not considered")]

    (note,) = said(configured(tmp_path, more, **zero))
    assert words in note
    assert note.startswith("hyperparameters.deepspeed: ")
    plain = {"reduce_bucket_size": 2e8, "offload_optimizer": {"device": "cpu", "ratio": 1.0}}
    assert not said(configured(tmp_path, {"tensor_parallel": {"autotp_size": 1}}, **plain))


def test_numbers_come_from_the_configuration_of_the_job(tmp_path: Path) -> None:
    workload = configured(tmp_path, {}, reduce_bucket_size="auto", stage3_max_live_parameters=3e7)
    assert workload.zero == Zero(bucket=2048.0**2, live=3e7)
    swift = told(tmp_path, {"deepspeed": "zero2"}, memory={"stack": "ms-swift"})
    assert swift.zero == Zero(bucket=2e8)
    assert told(tmp_path).zero == Zero()


@pytest.mark.parametrize(
    ("zero", "offload"),
    [
        ({"cpu_offload": True}, "optimizer"),
        ({"cpu_offload": True, "cpu_offload_param": True}, "parameters"),
        ({"cpu_offload": False}, "none"),
    ],
)
def test_the_old_switches_of_offloading(tmp_path: Path, zero: dict[str, Any], offload: str) -> None:
    assert configured(tmp_path, {}, **zero).cpu_offload == offload


def test_the_oldest_form_is_stage_1(tmp_path: Path) -> None:
    assert told(tmp_path, {"deepspeed": '{"zero_optimization": true}'}).sharding == "zero1"


@pytest.mark.parametrize(
    ("hyperparameters", "files", "environment", "wrapped", "words"),
    [
        ({"fsdp": "full_shard auto_wrap"}, {}, {}, True, ""),
        ({"fsdp": "full_shard"}, {}, {}, True, "has no auto_wrap"),
        ({"fsdp": "full_shard auto_wrap", "fsdp_config": '{"min_num_params": 100000}'}, {}, {}, True, "goes by size"),
        (
            {"accelerate_config": "a.yaml"},
            {"a.yaml": "distributed_type: FSDP\nfsdp_config: {fsdp_auto_wrap_policy: NO_WRAP}\n"},
            {},
            False,
            "a rank gathers all of it",
        ),
        (
            {"accelerate_config": "a.yaml"},
            {"a.yaml": "distributed_type: FSDP\nfsdp_config: {fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"},
            {},
            True,
            "",
        ),
        (
            {},
            {},
            {"ACCELERATE_USE_FSDP": "true", "FSDP_AUTO_WRAP_POLICY": "SIZE_BASED_WRAP"},
            True,
            "goes by size",
        ),
        (
            {},
            {},
            {"ACCELERATE_USE_FSDP": "true", "FSDP_AUTO_WRAP_POLICY": "NO_WRAP"},
            False,
            "a rank gathers all of it",
        ),
    ],
)
def test_how_fsdp_wraps(
    tmp_path: Path,
    hyperparameters: dict[str, Any],
    files: dict[str, str],
    environment: dict[str, str],
    wrapped: bool,
    words: str,
) -> None:
    workload = told(tmp_path, hyperparameters, files=files, environment=environment)
    assert workload.wrapped is wrapped
    phrases = ("has no auto_wrap", "goes by size", "a rank gathers all of it")
    said = [phrase for note in workload.notes for phrase in phrases if phrase in note]
    assert said == [words] * bool(words)


@pytest.mark.parametrize(
    ("memory", "zero"),
    [
        ({"stack": "deepspeed", "sharding": "zero2"}, Zero(5e8)),
        ({"stack": "hf-trainer", "sharding": "zero2"}, Zero()),
    ],
)
def test_a_script_that_starts_deepspeed_has_its_defaults(tmp_path: Path, memory: dict[str, str], zero: Zero) -> None:
    """Hugging Face's Trainer is mostly told "auto", and nothing is known of its configuration here."""
    assert told(tmp_path, memory=memory).zero == zero
