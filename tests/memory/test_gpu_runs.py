"""The runs that were measured on a GPU are what they say they are, and the program that measures them works."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from accuracy import gpu_rows, runs
from sagefit.cloud.images import environment
from sagefit.memory.presets import presets

EVERY = runs.rows("gpu.csv")
ROWS = runs.gpu_rows()
MEASURE = Path(runs.__file__).with_name("measure_gpu.py")
# transformers 5 ties flan-t5's head to its embedding, which the checkpoint does not; of encoders a preset counts the
# model below the head, and of GPT-2 all 1,024 positions.
COUNTED_OTHERWISE = {"google/flan-t5-base": 0.11, "distilbert/distilbert-base-uncased": 0.01}


def test_every_row_is_a_run_that_the_program_would_make_and_stands_once() -> None:
    planned = [*gpu_rows.configurations(), *gpu_rows.limited(ROWS)]
    known = {tuple(str(row[name]) for name in gpu_rows.CONFIGURATION) for row in planned}
    measured = [tuple(row[name] for name in gpu_rows.CONFIGURATION) for row in EVERY]
    assert list(EVERY[0]) == gpu_rows.COLUMNS
    assert len(set(measured)) == len(measured)
    assert set(measured) <= known


def test_peaks_are_those_of_one_process() -> None:
    for row in ROWS:
        phases = [float(row[f"{phase}_gib"]) for phase in ("forward", "backward", "optimizer")]
        allocated, reserved = float(row["allocated_gib"]), float(row["reserved_gib"])
        assert row["outcome"] == "ended"
        assert max(phases) <= allocated <= reserved, row
        assert float(row["static_gib"]) <= allocated, row
        assert 0 < float(row["outside_gib"]) < 2, row


def test_a_run_that_lived_with_less_memory_lives_with_more() -> None:
    asked = list(gpu_rows.needed(EVERY))
    assert len(asked) > 90
    for row, needed in asked:
        lives = [needed.lives[limit] for limit in gpu_rows.LIMITS]
        assert lives == sorted(lives), row
        assert needed.lives[gpu_rows.LIMITS[-1]] or needed.reserved > gpu_rows.LIMITS[-1], row


def test_a_limit_holds_and_changes_nothing_of_what_tensors_need() -> None:
    free = {_without_limit(row): row for row in ROWS}
    limited = [row for row in EVERY if row["limit_gib"]]
    assert {row["outcome"] for row in limited} == {"ended", "oom"}
    for row in limited:
        alone = free[_without_limit(row)]
        assert float(alone["allocated_gib"]) < float(row["limit_gib"]) < float(alone["reserved_gib"])
        if row["outcome"] == "ended":
            assert float(row["reserved_gib"]) <= float(row["limit_gib"]) + 0.01, row
            assert float(row["allocated_gib"]) == pytest.approx(float(alone["allocated_gib"]), rel=0.02), row
            assert int(row["retries"]) > 0, row


def _without_limit(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in gpu_rows.CONFIGURATION if name not in ("limit_gib", "series"))


@pytest.mark.parametrize("model", sorted({row["model"] for row in ROWS if row["kind"] == "text"}))
def test_a_measured_model_has_the_parameters_of_its_preset(model: str) -> None:
    built = {int(row["params"]) for row in ROWS if row["model"] == model}
    told = presets()[model.lower()].model.params
    assert max(built) == pytest.approx(told, rel=COUNTED_OTHERWISE.get(model, 0.006))


def test_what_a_job_file_cannot_say_is_told() -> None:
    said = runs.gpu_runs()
    assert len(said) + sum(bool(runs.unsaid(row)) for row in ROWS) == len(ROWS)
    assert {run.metric for run in said if run.placement.gpus > 1} == {"reserved"}
    assert {run.metric for run in said if run.placement.gpus == 1} == {"device"}


@pytest.mark.full(
    witness="tests/memory/test_gpu_runs.py::test_every_row_is_a_run_that_the_program_would_make_and_stands_once"
)
def test_the_program_trains_in_every_way_without_a_gpu_too(tmp_path: Path) -> None:
    python = environment("huggingface") / "bin" / "python"
    own = os.environ | {"TMPDIR": str(tmp_path)}
    tried = subprocess.run(
        [python, MEASURE, "--try"], capture_output=True, text=True, timeout=300, check=False, env=own
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert [line.split()[-2] for line in tried.stdout.splitlines()] == ["ended"] * len(list(gpu_rows.tries()))
