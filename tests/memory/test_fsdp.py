"""FSDP as itself: what a rank holds under each way of sharding, apart from DeepSpeed's ZeRO."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accuracy import lomo, runs
from sagefit.job.memory_model import Sharding
from sagefit.memory import GIB, Estimate, Placement, Prediction, Transformer, Workload, activations, predict
from sagefit.memory.stacks import profile_of
from sagefit.memory.states import model_state
from sagefit.memory.transformer import sizes

P = 8_030_261_248
LLAMA_8B = Transformer(params=P, layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)
WORK = Workload(model=LLAMA_8B, precision="bf16-mixed", sequence_length=1024, sharding="fsdp", stack="hf-trainer")
FOUR, TWO_HOSTS = Placement(1, 4, "A100"), Placement(2, 4, "A100")
EMBEDDINGS = 2 * 128256 * 4096
LAYER = (P - EMBEDDINGS) / 32


def of(workload: Workload, placement: Placement = FOUR) -> Estimate:
    prediction = predict(workload, placement)
    assert isinstance(prediction, Prediction)
    assert prediction.gpu is not None
    return prediction.gpu


def part(workload: Workload, name: str, placement: Placement = FOUR) -> float:
    """Bytes."""
    return of(workload, placement).parts.get(name, 0.0) * GIB


def test_weights_and_states_are_fp32_and_shared_by_all_ranks() -> None:
    """TrainingArguments' bf16: Accelerate keeps 4 bytes of weights and 8 of AdamW, a fourth of each on four ranks."""
    assert part(WORK, "weights") == pytest.approx(4 * P / 4)
    assert part(WORK, "optimizer") == pytest.approx(8 * P / 4)


def test_pure_bf16_has_no_masters() -> None:
    """8 bytes a parameter in all; DeepSpeed's ZeRO adds fp32 masters."""
    pure, zero = replace(WORK, precision="bf16"), replace(WORK, precision="bf16", sharding="zero3")
    assert part(pure, "weights") == pytest.approx(2 * P / 4)
    assert part(pure, "optimizer") == pytest.approx(4 * P / 4)
    assert part(zero, "optimizer") == pytest.approx(12 * P / 4)


@pytest.mark.parametrize(("sharding", "size"), [("none", 4), ("zero2", 4), ("zero3", 2), ("fsdp", 2)])
def test_embeddings_beside_quantized_weights_that_are_sharded_have_16_bits(sharding: Sharding, size: int) -> None:
    workload = replace(WORK, method="qlora", sharding=sharding)
    frozen = 0.5625 * (P - EMBEDDINGS) + size * EMBEDDINGS
    profile = profile_of("hf-trainer", sharding)
    state = model_state(workload, FOUR, profile, sizes(LLAMA_8B, workload, profile))
    ranks = 4 if sharding in ("zero3", "fsdp") else 1
    trained = 4 * sizes(LLAMA_8B, workload, profile).adapters
    assert state.weights == pytest.approx((frozen + trained) / ranks)


@pytest.mark.parametrize(
    ("fields", "wide"),
    [
        ({"sharding": "none"}, True),
        ({"sharding": "fsdp"}, True),
        ({"sharding": "fsdp", "precision": "bf16"}, False),
        ({"sharding": "zero3"}, False),
    ],
)
def test_what_flows_between_quantized_layers(fields: dict[str, Any], wide: bool) -> None:
    workload = replace(WORK, method="qlora", **fields)
    profile = profile_of("hf-trainer", workload.sharding)
    assert activations.layer_input(LLAMA_8B, workload, profile) == (4 if wide else 2) * LLAMA_8B.hidden


def test_two_layers_and_the_embeddings_are_gathered_in_16_bits() -> None:
    forward = replace(WORK, micro_batch=64)  # the peak is in the forward pass, without gradients that travel
    assert of(forward).phase == "forward"
    assert part(forward, "communication") == pytest.approx(2 * (2 * LAYER + EMBEDDINGS))


def test_shard_grad_op_keeps_all_weights_gathered() -> None:
    """But a rank owns a fourth of them already."""
    forward = replace(WORK, micro_batch=64, sharding="fsdp-shard-grad-op")
    assert part(forward, "communication") == pytest.approx(2 * P * 3 / 4)


def test_hybrid_sharding_shares_among_the_ranks_of_a_host() -> None:
    hybrid = replace(WORK, sharding="fsdp-hybrid-shard")
    assert part(hybrid, "optimizer", TWO_HOSTS) == pytest.approx(8 * P / 4)
    assert part(WORK, "optimizer", TWO_HOSTS) == pytest.approx(8 * P / 8)
    assert of(hybrid) == of(WORK)


def test_a_stack_that_shards_with_fsdp_needs_no_word_for_it() -> None:
    torchtune = replace(WORK, stack="torchtune")
    assert of(replace(torchtune, sharding="zero3")) == of(torchtune)


@pytest.mark.parametrize("kind", ["fsdp", "fsdp-shard-grad-op"])
def test_runs_on_a_gpu_reserve_what_is_predicted(kind: str) -> None:
    known = [run for run in runs.gpu_runs() if run.workload.sharding == kind]
    found = lomo.score(lomo.gpu_outcomes(known))
    assert found.runs >= 25
    assert found.median < 0.08
    assert found.above < 0.05


def test_litgpt_gathers_the_model_when_it_loads_it() -> None:
    lora = replace(WORK, stack="litgpt", method="lora", precision="bf16", base_dtype="16-bit")

    def at_load(workload: Workload) -> float:
        return of(workload).phases["load"] * GIB

    assert at_load(lora) - at_load(replace(lora, stack="torchtune")) == pytest.approx(2 * P, rel=0.02)
    away = replace(lora, cpu_offload="parameters")
    assert at_load(away) == pytest.approx(at_load(replace(away, stack="torchtune")), rel=0.02)
