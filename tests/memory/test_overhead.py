"""What an allocator holds beside tensors: a share, and the pools of a rank of FSDP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy import lomo, runs
from job_files import auto_job
from sagefit.memory import GIB, Diffusion, Estimate, Placement, Prediction, Transformer, Workload, predict
from sagefit.memory.overhead import CONTEXT, NCCL, peak, with_overhead
from sagefit.memory.read import read

FORWARD = {"weights": 10.0 * GIB, "activations": 30.0 * GIB}
BACKWARD = {"weights": 10.0 * GIB, "activations": 5.0 * GIB, "gradients": 20.0 * GIB}
STEP = {"weights": 10.0 * GIB, "gradients": 20.0 * GIB, "temporaries": 2.0 * GIB}
PHASES = {"load": {"weights": 10.0 * GIB}, "forward": FORWARD, "backward": BACKWARD, "step": STEP}
MOMENTS = {phase: parts for phase, parts in PHASES.items() if phase != "load"}
EIGHT = Placement(1, 8, "A100")
LLAMA_8B = Transformer(
    params=8_030_261_248, layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256
)
SHARDED = Workload(
    model=LLAMA_8B, precision="bf16", sequence_length=4096, sharding="zero3", stack="torchtune", world_size=8
)


def on_gpu(workload: Workload, placement: Placement = EIGHT) -> Estimate:
    prediction = predict(workload, placement)
    assert isinstance(prediction, Prediction)
    assert prediction.gpu is not None
    return prediction.gpu


def test_without_pools_what_changes_is_held_six_percent_more() -> None:
    held = with_overhead(PHASES, 1)
    assert held["forward"]["allocator"] / GIB == pytest.approx(0.06 * 30)
    assert held["forward"]["framework"] == CONTEXT
    assert with_overhead(PHASES, 2)["forward"]["framework"] == CONTEXT + NCCL
    assert {parts["pools"] for parts in held.values()} == {0.0}


def test_pools_make_up_the_most_of_each_part() -> None:
    """By hand: 10 of weights, and 30 + 20 + 2 with 6 %, against the peak of forward: 10, and 30 with 6 %."""
    held = with_overhead(PHASES, 2, moments=MOMENTS, pools_within=1000 * GIB)
    assert held["forward"]["pools"] / GIB == pytest.approx((20 + 2) * 1.06)
    assert {held[phase]["pools"] for phase in ("backward", "step")} == {held["forward"]["pools"]}
    assert held["load"]["pools"] == 0.0
    most = 40 + 0.06 * 30 + (CONTEXT + NCCL) / GIB + 3
    assert peak(with_overhead(PHASES, 2, moments=MOMENTS, pools_within=most * GIB)) / GIB == pytest.approx(most)
    assert with_overhead(PHASES, 2, moments=MOMENTS, pools_within=1.0)["forward"]["pools"] == 0.0


def test_pools_hold_what_any_moment_of_backward_has_the_most_of() -> None:
    """By hand: of two moments in one phase the smaller one, too, has something that stays."""
    earlier = {"weights": 10.0 * GIB, "temporaries": 4.0 * GIB}
    held = with_overhead(PHASES, 2, moments=MOMENTS | {"earlier": earlier}, pools_within=1000 * GIB)
    assert held["forward"]["pools"] / GIB == pytest.approx((20 + 4) * 1.06)


def test_a_rank_of_fsdp_has_pools_and_a_run_dies_of_less_only() -> None:
    estimate = on_gpu(SHARDED)
    pools = estimate.parts["pools"]
    assert pools > 0
    assert estimate.spare == pytest.approx(pools)
    assert estimate.least == pytest.approx(estimate.point - pools)
    assert sum(estimate.parts.values()) == pytest.approx(estimate.point)


def test_logits_do_not_fit_into_blocks_of_freed_gradients() -> None:
    """By hand: 20 of gradients are freed, activations use 12 of their blocks, and logits of 5 none of the other 8."""
    forward = {"weights": 10.0 * GIB, "gradients": 0.0, "activations": 12.0 * GIB, "logits": 5.0 * GIB}
    phases = {**PHASES, "forward": forward}
    assert with_overhead(phases, 1, frees=True)["forward"]["pools"] / GIB == pytest.approx(5)
    more = {**phases, "forward": forward | {"activations": 18.0 * GIB}}
    assert with_overhead(more, 1, frees=True)["forward"]["pools"] / GIB == pytest.approx(2)
    kept = {**phases, "forward": forward | {"gradients": 20.0 * GIB}}
    for other in (with_overhead(phases, 1), with_overhead(kept, 1, frees=True)):
        assert other["forward"]["pools"] == 0.0
    assert {with_overhead(phases, 1, frees=True)[phase]["pools"] for phase in ("load", "backward", "step")} == {0.0}


@pytest.mark.parametrize(
    ("fields", "placement"),
    [
        ({"sharding": "zero2"}, EIGHT),
        ({"sharding": "none"}, EIGHT),
        ({"stack": "deepspeed"}, EIGHT),
        ({"stack": "torchtitan"}, EIGHT),
        ({"expandable_segments": True}, EIGHT),
        ({"world_size": 1}, Placement(1, 1, "A100")),
    ],
)
def test_nothing_else_has_pools(fields: dict[str, Any], placement: Placement) -> None:
    estimate = on_gpu(replace(SHARDED, **fields), placement)
    assert "pools" not in estimate.parts
    assert estimate.spare == 0.0


def test_what_another_phase_needs_is_no_spare() -> None:
    """Evaluation of a large batch has no pools, so a run needs what it takes."""
    alone = on_gpu(SHARDED)
    batch = next(
        n for n in range(1, 99) if on_gpu(replace(SHARDED, evaluation_batch=n)).phases["evaluation"] > alone.least
    )
    estimate = on_gpu(replace(SHARDED, evaluation_batch=batch))
    assert estimate.phases["evaluation"] <= estimate.point
    assert estimate.least == pytest.approx(estimate.phases["evaluation"])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 8), st.sampled_from([512, 2048, 8192]), st.booleans())
def test_a_run_never_lives_with_more_than_it_holds(batch: int, length: int, checkpointing: bool) -> None:
    work = replace(SHARDED, micro_batch=batch, sequence_length=length, gradient_checkpointing=checkpointing)
    estimate = on_gpu(work)
    assert 0 < estimate.least <= estimate.point <= estimate.upper
    assert estimate.least >= on_gpu(replace(work, expandable_segments=True)).point * (1 - 1e-9)


def test_buckets_of_ddp_stay_from_the_first_phase_to_the_last() -> None:
    work = replace(SHARDED, sharding="none", stack="hf-trainer")
    phases, alone = on_gpu(work).phases, on_gpu(replace(work, world_size=1), Placement(1, 1, "A100")).phases
    gradients = 2 * LLAMA_8B.params / GIB  # in 16 bits; tied or not, all of them
    for phase in ("forward", "backward", "step", "checkpoint"):
        assert phases[phase] - alone[phase] == pytest.approx(gradients + NCCL / GIB, rel=1e-3), phase


@pytest.mark.parametrize(
    ("environment", "expandable"),
    [
        ({}, False),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, True),
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128, expandable_segments: true"}, True),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}, False),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, True),
        (
            {
                "PYTORCH_ALLOC_CONF": "expandable_segments:False",
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            },
            False,
        ),
    ],
)
def test_the_environment_says_how_the_allocator_grows(environment: dict[str, str], expandable: bool) -> None:
    assert read(auto_job({"environment": environment})).expandable_segments is expandable


def test_fsdp_reserves_what_is_predicted() -> None:
    """A rank of FSDP on a GPU: half of the runs are within a tenth, and no more than one in seven above the bound."""
    found = lomo.gpu_scores(lomo.gpu_outcomes(runs.gpu_runs()))["FSDP"]
    assert found.runs > 90
    assert found.median < 0.1
    assert found.above < 1 / 7


@pytest.mark.of_files(
    *(f"tests/accuracy/{name}" for name in ("others.csv", "fresh.csv", "gpu.csv", "first_sight.csv", "runs.py")),
    "tests/memory/test_overhead.py",
)
def test_what_was_said_at_first_sight_belongs_to_these_runs() -> None:
    tables = {"others.csv": runs.other_runs(), "fresh.csv": runs.fresh_runs(), "gpu.csv": runs.gpu_runs()}
    for table, known in tables.items():
        measured = {run.id: run.measured for run in known if table != "gpu.csv" or not _was_there(run)}
        kept = [row for row in runs.rows("first_sight.csv") if row["rows"] == table]
        assert len(kept) == len(measured)
        for row in kept:
            assert float(row["measured_gib"]) == pytest.approx(measured[row["id"]], abs=6e-4)
            assert float(row["point_gib"]) <= float(row["bound_gib"])


def _was_there(run: runs.Run) -> bool:
    """Whether a run was there while its model's predictions were made, so that there is no first sight of it."""
    return isinstance(run.workload.model, Diffusion) or run.model.startswith(("detr", "rtdetr", "yolos", "segformer"))
