"""The exact mode without torch: what is kept and found again, and the arithmetic on traced bytes."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from sagefit.cli import trace as trace_cli
from sagefit.errors import SagefitError
from sagefit.job.model import Job
from sagefit.memory.read import read
from sagefit.memory.trace import device_phases, lookup, run, store, with_trace
from sagefit.memory.trace.inputs import inputs_of
from sagefit.memory.trace.phases import VISION_CONSTANT, VISION_FACTOR, tensor_phases
from sagefit.memory.workload import GIB, Phases, Placement, Traced, TracedPoint, Workload
from sagefit.planning import plan
from trace_jobs import traced_job

GPU = Placement(1, 1)


def peaks(activations: int, held: int) -> Phases:
    return {
        "forward": {"weights": 100, "activations": activations, "gradients": held, "batch": 7},
        "backward": {"weights": 100, "activations": activations, "gradients": held + 10, "temporaries": 5},
    }


def point(batch: int, per_sample: int, *, checkpointing: bool = False) -> TracedPoint:
    return TracedPoint(
        batch,
        checkpointing,
        {
            "single": peaks(batch * per_sample, 0),
            "accumulating": peaks(batch * per_sample, 100),
            "evaluation": {"evaluation": {"weights": 100, "activations": batch}},
        },
    )


TRACED = Traced(
    key="k",
    family="transformer",
    parameters=25,
    trained=25,
    weights=100,
    buffers=3,
    gradients=100,
    optimizers={
        "adamw": {"state": 200, "temporaries": 100},
        "adamw-8bit": {"state": 50, "temporaries": 0},
        "sgd-momentum": {"state": 100, "temporaries": 100},
    },
    points=(point(8, 30), point(2, 30), point(8, 10, checkpointing=True), point(2, 10, checkpointing=True)),
)
WORKLOAD = Workload(model=TRACED, micro_batch=8)


def total(phases: Phases, phase: str) -> float:
    return sum(phases[phase].values())


def test_phases_are_what_was_traced_and_the_optimizer() -> None:
    phases = tensor_phases(WORKLOAD)
    assert total(phases, "load") == 103
    assert total(phases, "forward") == 100 + 8 * 30 + 7 + 200
    assert total(phases, "backward") == 100 + 8 * 30 + 10 + 5 + 200
    assert phases["step"] == {
        "weights": 100, "buffers": 3, "batch": 7, "optimizer": 200, "gradients": 100, "temporaries": 100
    }  # fmt: skip


def test_another_batch_lies_on_the_line_between_two() -> None:
    halved = tensor_phases(replace(WORKLOAD, micro_batch=4))
    assert halved["forward"]["activations"] == 4 * 30
    assert halved["forward"]["optimizer"] == 200
    assert tensor_phases(replace(WORKLOAD, evaluation_batch=32))["evaluation"]["activations"] == 32
    assert "evaluation" not in halved


def test_remedies_need_no_new_trace() -> None:
    assert tensor_phases(replace(WORKLOAD, accumulation=4))["forward"]["gradients"] == 100
    assert tensor_phases(replace(WORKLOAD, gradient_checkpointing=True))["forward"]["activations"] == 8 * 10
    assert tensor_phases(replace(WORKLOAD, optimizer="adamw-8bit"))["step"]["optimizer"] == 50
    assert tensor_phases(replace(WORKLOAD, optimizer="adamw-kahan"))["step"]["optimizer"] == 200 + 100


def test_from_tensors_to_the_device() -> None:
    seen = replace(WORKLOAD, model=replace(TRACED, family="vision"))
    tensors, device = tensor_phases(seen), device_phases(seen, GPU)
    for phase in tensors:
        assert total(device, phase) == pytest.approx(VISION_FACTOR * total(tensors, phase) + VISION_CONSTANT)
    assert device_phases(WORKLOAD, GPU)["forward"]["framework"] > 0
    two = device_phases(WORKLOAD, Placement(1, 2))
    assert two["backward"]["communication"] == 100
    assert total(two, "load") > total(device_phases(WORKLOAD, GPU), "load")


def test_batches_that_are_traced() -> None:
    assert {batch: run.batches(batch)[1] for batch in (1, 2, 3, 4, 8, 64)} == {1: 2, 2: 4, 3: 2, 4: 2, 8: 2, 64: 16}


# --- What is stored, and found again ---------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SAGEFIT_TRACE_PYTHON", raising=False)
    return tmp_path


def keep(job: Job, *, refusal: str = "") -> store.Record:
    inputs = asdict(inputs_of(job, read(job), job.hyperparameters))
    result = {"torch": "2.13.0", "points": [asdict(p) for p in TRACED.points]}
    names = ("family", "parameters", "trained", "weights", "buffers", "gradients", "optimizers")
    result |= {name: getattr(TRACED, name) for name in names}
    record = store.Record(inputs, None if refusal else result, refusal, 1.0, "none")
    store.save(job, record)
    return record


def test_a_kept_trace_is_used_for_every_batch_and_remedy(home: Path) -> None:
    job = traced_job(home)
    assert "no traced result yet; run" in read(job).notes[-1]
    keep(job)
    for change in ({}, {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}, {"optim": "adamw_8bit"}):
        workload = read(job, {**job.hyperparameters, **change})
        assert isinstance(workload.model, Traced), change
        assert workload.model.points == TRACED.points
        hash(workload)


def test_a_trace_alone_chooses_an_instance(home: Path) -> None:
    image = {"framework": "pytorch", "version": "2.6"}  # it has images for GPU instances
    job = traced_job(home, attempts="auto", resources={"instance_type": "auto", "max_runtime": "20m"}, image=image)
    keep(job)
    fit = plan(job).attempts[0].fit
    assert fit
    assert fit.prediction
    assert (fit.verdict, fit.prediction.source) == ("FITS", "trace")


def test_what_was_not_traced_is_not_used_and_said(home: Path) -> None:
    job = traced_job(home)
    keep(job)
    wider = read(job, {**job.hyperparameters, "width": 4})
    assert "out of date (hyperparameters.width changed since); run " in wider.notes[-1]
    longer = read(job, {**job.hyperparameters, "max_seq_length": 999})
    assert "sequence_length" in longer.notes[-1]
    assert wider.model is None
    assert longer.model is None


def test_changed_code_makes_a_trace_stale(home: Path) -> None:
    job = traced_job(home)
    keep(job)
    (home / "src" / "other.py").write_text("x = 1\n", encoding="utf-8")
    assert "out of date (code changed since)" in read(job).notes[-1]
    keep(job)
    assert len(list(store.folder(job).glob("*.json"))) == 1, "results of other code are not kept"


def test_a_refusal_is_remembered(home: Path) -> None:
    job = traced_job(home)
    keep(job, refusal="train.py:3: aten.nonzero.default gives a tensor whose size depends on values")
    assert read(job).notes[-1].endswith("train.py:3: aten.nonzero.default gives a tensor whose size depends on values")


def test_without_the_field_nothing_is_looked_up(home: Path) -> None:
    job = traced_job(home, memory={"precision": "bf16"})
    workload = Workload(model=None)
    assert with_trace(job, workload, {}) is workload


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sharding": "zero2"}, "memory.sharding is zero2"),
        ({"cpu_offload": "optimizer"}, "memory.cpu_offload is optimizer"),
        ({"method": "qlora"}, "memory.method is qlora"),
    ],
)
def test_what_is_not_traced_at_all(home: Path, change: dict[str, Any], reason: str) -> None:
    job = traced_job(home)
    keep(job)
    found = lookup(job, replace(read(job), model=None, **change), job.hyperparameters)
    assert isinstance(found, str)
    assert reason in found


def test_a_model_that_cannot_checkpoint(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = traced_job(home)
    monkeypatch.setattr(sys.modules[__name__], "TRACED", replace(TRACED, points=TRACED.points[:2]))
    keep(job)
    checkpointed = read(job, {**job.hyperparameters, "gradient_checkpointing": True})
    assert "no gradient checkpointing" in checkpointed.notes[-1]


@pytest.mark.parametrize(
    ("function", "field"),
    [("train.py", "memory.trace.function"), ("gone.py:build", "memory.trace.function"), ("../a.py:f", "function")],
)
def test_the_job_file_must_name_a_function_of_the_code(home: Path, function: str, field: str) -> None:
    with pytest.raises(SagefitError, match=field):
        traced_job(home, memory={"trace": {"function": function}})


# --- The command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def traced_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job for whose model PyTorch, which is not asked here, answers what `keep` writes."""
    job = traced_job(home)
    record = keep(job)

    def answered(*_: object, progress: run.Progress, **__: object) -> store.Record:
        progress("points", 1.0)
        return record

    monkeypatch.setattr(trace_cli, "run_trace", answered)
    return str(job.path)


def test_the_command_shows_phases_and_the_peak_on_a_gpu(traced_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace_cli.trace(traced_file)
    told = capsys.readouterr()
    assert "backward" in told.out
    assert "with the CUDA context and the allocator: " in told.out
    assert "torch 2.13.0, 1.0 s, network: none" in told.err


def test_the_command_answers_in_json(traced_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace_cli.trace(traced_file, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer["device"]["gib"] > 1  # a CUDA context and the allocator's share, beside a few bytes of tensors
    assert answer["phases"]["backward"]["weights"] == pytest.approx(100 / GIB)
    assert answer["traced"]["parameters"] == 25
