"""Training without a GPU: the host holds the tensors, and the planner agrees with the runs that were measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy import falls, lomo, runs
from job_files import auto_job
from sagefit.memory import GIB, Placement, Transformer, Vision, Workload, bounds, predict
from sagefit.memory.cpu import HELD_CHECKPOINTED, HELD_MOST
from sagefit.memory.host import CPU_PROCESS
from sagefit.memory.presets import presets
from sagefit.memory.read import read
from sagefit.planning import plan, predicted_on_cpu

CPU = Placement()
# As gpt-11m in cpu.csv: 6 layers of h = 384 with an MLP of 4 h.
GPT = Transformer(
    params=10_942_464,
    layers=6,
    hidden=384,
    heads=6,
    kv_heads=6,
    head_dim=64,
    ffn=1536,
    vocab=256,
    gated=False,
    norm="layer",
)
# Bytes for each token: 16 h of norms and 16 h of attention in fp32, statistics of both, 8 F of the MLP.
LAYER = 32 * 384 + 8 + 4 * 6 + 8 * 1536
PLAIN = Workload(GPT, stack="plain-torch", micro_batch=16, sequence_length=256)


def host(workload: Workload, placement: Placement = CPU) -> Any:
    prediction = predict(workload, placement)
    assert prediction
    assert prediction.gpu is None
    return prediction.host


def test_the_sum_by_hand() -> None:
    found = host(PLAIN)
    tokens = 16 * 256
    assert found.phase == "forward"
    assert found.parts["process"] * GIB == CPU_PROCESS
    assert found.parts["weights"] * GIB == 4 * GPT.params
    assert found.parts["optimizer"] * GIB == 8 * GPT.params
    assert found.parts["activations"] * GIB == pytest.approx(LAYER * tokens * 6, rel=1e-3)
    assert found.parts["temporaries"] * GIB == pytest.approx(0.2 * LAYER * tokens, rel=1e-3)
    assert found.parts["allocator"] * GIB == pytest.approx(LAYER * tokens, rel=1e-3)
    assert "framework" not in found.parts


def test_what_malloc_cannot_use_is_bounded_and_can_be_switched_off() -> None:
    large = replace(PLAIN, micro_batch=512, gradient_checkpointing=True)
    assert host(large).parts["allocator"] * GIB == pytest.approx(HELD_CHECKPOINTED * HELD_MOST)
    assert "allocator" not in host(replace(large, frees_at_once=True)).parts


def test_dropout_keeps_the_scores_of_attention() -> None:
    dropping = replace(PLAIN, model=replace(GPT, dropout=True))
    scores = 12 * 6 * 256 * 16 * 256 * 6  # softmax, mask and product in fp32, of each head, position, token and layer
    assert host(dropping).parts["activations"] * GIB > host(PLAIN).parts["activations"] * GIB + scores
    eager = host(replace(dropping, attention="eager"))
    assert eager.point == host(dropping).point


def test_adamw_takes_one_parameter_after_the_other() -> None:
    one = replace(PLAIN, micro_batch=1, sequence_length=8)
    step = host(one).phases["step"]
    states = CPU_PROCESS + 16 * GPT.params + 2 * 4 * 384 * 1536
    assert step * GIB == pytest.approx(states, rel=1e-3)


def test_several_hosts_train_together() -> None:
    two = Placement(hosts=2)
    assert host(PLAIN, two).point > host(PLAIN).point  # gradients in buckets
    sharded = replace(PLAIN, sharding="zero3", micro_batch=1, sequence_length=8)
    assert host(sharded, two).parts["optimizer"] == pytest.approx(host(sharded).parts["optimizer"] / 2)


def test_the_environment_says_whether_malloc_gives_back_and_the_image_what_is_loaded() -> None:
    assert not read(auto_job()).frees_at_once
    assert read(auto_job({"environment": {"MALLOC_MMAP_THRESHOLD_": "131072"}})).frees_at_once
    assert not read(auto_job()).hugging_face
    assert read(auto_job({"image": {"framework": "huggingface", "version": "4.56"}})).hugging_face


def test_an_attempt_of_a_gpu_job_is_predicted_as_the_embedded_cloud_runs_it() -> None:
    job = auto_job({"resources.instance_type": "ml.g5.4xlarge"})
    for attempt in plan(job).attempts:
        found = predicted_on_cpu(plan(job), attempt)
        assert found
        assert found.gpu is None
        assert {"weights", "optimizer", "activations"} <= set(found.host.parts)
    assert predicted_on_cpu(plan(auto_job({"memory": None, "resources.instance_type": "ml.m5.large"})), attempt) is None


MODELS = [GPT, replace(GPT, dropout=True), presets()["bert-base"].model, Vision("resnet50", 0)]
workloads = st.builds(
    Workload,
    model=st.sampled_from(MODELS),
    method=st.sampled_from(["full", "lora"]),
    precision=st.sampled_from(["fp32", "bf16-mixed"]),
    optimizer=st.sampled_from(["adamw", "sgd"]),
    stack=st.sampled_from(["plain-torch", "hf-trainer", "unknown"]),
    micro_batch=st.integers(1, 64),
    accumulation=st.integers(1, 4),
    sequence_length=st.integers(1, 512),
    gradient_checkpointing=st.booleans(),
    frees_at_once=st.booleans(),
    evaluation_batch=st.none() | st.integers(1, 16),
)


@settings(deadline=None, max_examples=60)
@given(workloads, st.integers(1, 32))
def test_more_of_anything_never_needs_less(workload: Workload, more: int) -> None:
    found = host(workload)
    assert sum(found.parts.values()) == pytest.approx(found.point)
    assert found.upper >= found.point == pytest.approx(max(found.phases.values()))
    for larger in (
        replace(workload, micro_batch=workload.micro_batch + more),
        replace(workload, sequence_length=workload.sequence_length + more),
        replace(workload, accumulation=workload.accumulation + more),
        replace(workload, frees_at_once=False),
        replace(workload, stack="unknown"),
    ):
        assert host(larger).point >= found.point * (1 - 1e-9)


@cache
def measured() -> list[falls.Fall]:
    return list(falls.falls(runs.cpu_runs()))


def pairs(remedy: str) -> Iterator[falls.Fall]:
    return (fall for fall in measured() if fall.remedy == remedy)


@pytest.mark.parametrize("remedy", falls.REMEDIES)
def test_a_remedy_takes_off_what_is_predicted(remedy: str) -> None:
    found = list(pairs(remedy))
    assert len(found) >= 3
    for fall in found:
        assert fall.error <= falls.STATED[remedy], (fall.before.id, fall.after.id)


def test_rows_tell_their_whole_configuration() -> None:
    table = runs.rows("cpu.csv")
    assert len({row["id"] for row in table}) == len(table)
    for row in table:
        assert float(row["measured_gib"]) > 0.2
        assert row["torch"]
    assert (Path(runs.__file__).parent / "measure_cpu.py").is_file()


def test_the_bounds_are_those_of_the_measured_runs() -> None:
    on_cpu = {name: ratio for name, ratio in bounds.load().items() if name.startswith("cpu/")}
    assert on_cpu == lomo.cpu_ratios(runs.cpu_runs())
