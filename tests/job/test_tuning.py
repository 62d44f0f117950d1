"""The ``tuning`` block: its rules, what a search costs at worst, and the hyperparameters that need most."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from job_files import auto_job, write_job
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.job.tuning import Tuning
from sagefit.memory.read import read
from sagefit.planning import PlannedAttempt, plan, worst_case_usd

LOSS = {"metric": "loss", "type": "Minimize"}
RATE = {"min": 0.001, "max": 0.1, "scaling": "Logarithmic"}
SEARCH: dict[str, Any] = {
    "metrics": [{"name": "loss", "regex": "loss=([0-9.]+)"}],
    "resources.poll_interval": None,
    "tuning": {"objective": LOSS, "max_jobs": 5, "max_parallel_jobs": 2, "ranges": {"rate": RATE, "depth": [2, 4]}},
}


def searching(**changes: Any) -> dict[str, Any]:
    """The changes that make a job search, and more of them: nothing is shared between jobs."""
    return deepcopy(SEARCH) | changes


def refusal(folder: Path, changes: dict[str, Any]) -> str:
    with pytest.raises(SagefitError) as refused:
        load_job(str(write_job(folder, searching(**changes))))
    return refused.value.message


def test_a_search_is_loaded(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path, searching())))
    assert job.tuning is not None
    assert job.tuning.values("rate") == ["0.001", "0.1"]
    assert job.tuning.values("depth") == ["2", "4"]


@pytest.mark.parametrize(
    ("changes", "field", "rule"),
    [
        ({"tuning.max_jobs": None}, "tuning.max_jobs", "is missing"),
        ({"tuning.max_jobs": 751}, "tuning.max_jobs", "takes 750 (DG)"),
        ({"tuning.max_parallel_jobs": 6}, "tuning.max_parallel_jobs", "of 5 training jobs in all"),
        ({"tuning.max_jobs": 20, "tuning.max_parallel_jobs": 11}, "tuning.max_parallel_jobs", "quota of a tuning job"),
        ({"tuning.max_runtime": "1m"}, "tuning.max_runtime", "1m is below the least value of 2m"),
        ({"tuning.max_runtime": "31d"}, "tuning.max_runtime", "31d is above the limit of 30d"),
        ({"tuning.ranges": {}}, "tuning.ranges", "is empty"),
        ({"tuning.ranges": {f"r{n}": [1, 2] for n in range(31)}}, "tuning.ranges", "at most 30 are allowed"),
        ({"tuning.ranges.depth": []}, "tuning.ranges.depth", "0 values"),
        ({"tuning.ranges.depth": list(range(31))}, "tuning.ranges.depth", "31 values"),
        ({"tuning.ranges.depth": [2, 2]}, "tuning.ranges.depth", "the same value twice"),
        ({"tuning.ranges.depth": ["x" * 257]}, "tuning.ranges.depth", "1 to 256 characters"),
        ({"tuning.ranges.hub": ["hf_" + "a" * 30]}, "tuning.ranges.hub", "looks like a secret"),
        ({"tuning.ranges.rate": {"min": 2, "max": 2}}, "tuning.ranges.rate", "is not below max"),
        ({"tuning.ranges.rate.min": 0}, "tuning.ranges.rate", "numbers above 0 only"),
        ({"tuning.ranges.rate": {"min": 0.5, "max": 1, "scaling": "ReverseLogarithmic"}}, "ranges.rate", "below 1"),
        (
            {"tuning.ranges.epochs": [1, 2]},
            "hyperparameters.epochs",
            "is searched by tuning.ranges.epochs and set here too",
        ),
        ({"attempts.1.hyperparameters": {"depth": 2}}, "attempts[1].hyperparameters.depth", "is searched"),
        ({"hyperparameters": {f"h{n}": 1 for n in range(95)}}, "tuning.ranges", "would have 101 hyperparameters"),
        ({"tuning.objective.metric": "score"}, "tuning.objective.metric", "'score' is not among metrics: loss"),
        ({"metrics": [{"name": f"m{n}", "regex": "(.)"} for n in range(17)]}, "metrics", "which leaves 16"),
        ({"tuning.strategy": "Grid"}, "tuning.ranges.rate", "takes lists of values only"),
        ({"tuning.strategy": "Grid", "tuning.ranges": {"a": [1, 2]}}, "tuning.max_jobs", "its 2 combinations"),
        ({"tuning.strategy": "Hyperband", "tuning.early_stopping": True}, "early_stopping", "by its own rules"),
        ({"tuning.strategy": "Hyperband", "hyperparameters": {}}, "tuning.strategy", "and none is set"),
        ({"name": "handwritten-dig1"}, "name", "with tuning at most 15"),
        ({"schedule": "rate(1 day)"}, "schedule", "cannot have a schedule"),
        ({"resources.warm_pool": "10m"}, "resources.warm_pool", "no instances warm"),
        ({"attempts.0.keep_alive_seconds": 60}, "attempts[0].keep_alive_seconds", "no instances warm"),
        ({"resources.remote_debug": True}, "resources.remote_debug", "training jobs of a tuning job have none"),
        ({"environment": {f"V{n}": 1 for n in range(48)}}, "environment", "a tuning job takes 48 (API)"),
    ],
)
def test_refused(tmp_path: Path, changes: dict[str, Any], field: str, rule: str) -> None:
    said = refusal(tmp_path, changes)
    assert f"{field}: " in said
    assert rule in said


def test_ten_more_attempts_take_a_character_of_the_name(tmp_path: Path) -> None:
    attempts = [{"name": f"a{n}", "instance_type": "ml.m5.large"} for n in range(11)]
    assert "with tuning at most 14" in refusal(tmp_path, {"name": "handwritten-dig", "attempts": attempts})


def search(**changes: Any) -> Tuning:
    return Tuning.model_validate(SEARCH["tuning"] | changes)


def test_what_is_paid_and_how_long_it_takes() -> None:
    assert (search().trained(600, 120), search().longest(600)) == (5 * 720, 3 * 600)
    limited = search(max_runtime=1000)
    assert (limited.trained(600, 120), limited.longest(600)) == (2 * 1120, 1000)
    assert search(max_runtime=2000).trained(600, 120) == 5 * 720, "all trials end before the search is stopped"
    grid = search(strategy="Grid", max_jobs=None, ranges={"a": [1, 2, 3], "b": [True, False]})
    assert (grid.jobs, grid.trained(10, 0)) == (6, 60)


def test_the_worst_case_counts_every_trial(tmp_path: Path) -> None:
    def usd(changes: dict[str, Any]) -> float:
        attempts = plan(load_job(str(write_job(tmp_path, changes)))).attempts
        return worst_case_usd(attempts, "us-east-1", packaged=True) or 0.0

    assert usd(searching()) == pytest.approx(5 * usd({}))
    assert usd(searching(**{"tuning.max_runtime": "20m"})) == pytest.approx(2 * usd({}))


def test_a_poll_interval_has_to_cover_all_rounds(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path, searching(**{"resources.poll_interval": "1s"}))))
    with pytest.raises(SagefitError, match="a run can check its jobs 2,600 times"):
        plan(job)


def test_a_batch_size_that_is_searched_is_planned_at_its_largest() -> None:
    changes = searching() | {
        "hyperparameters.per_device_train_batch_size": None,
        "tuning.ranges.per_device_train_batch_size": {"min": 8, "max": 64},
        "hyperparameters.gradient_checkpointing": None,
        "tuning.ranges.gradient_checkpointing": [True, False],
    }
    workload = read(auto_job(deepcopy(changes)))
    assert (workload.micro_batch, workload.gradient_checkpointing) == (64, False)
    assert any("per_device_train_batch_size is searched among 8, 64; planned for 64" in n for n in workload.notes)
    assert read(auto_job(changes), {"per_device_train_batch_size": 8}).micro_batch == 8


def test_remedies_leave_what_is_searched_alone() -> None:
    batch = {"hyperparameters.per_device_train_batch_size": None, "memory.knobs.micro_batch": "rows"}
    attempts: list[PlannedAttempt] = plan(auto_job(searching() | batch | {"tuning.ranges.rows": [8, 32]})).attempts
    assert all("rows" not in attempt.hyperparameters for attempt in attempts)


def test_a_grid_leaves_the_number_of_trials_to_sagemaker(tmp_path: Path) -> None:
    grid = {"tuning.strategy": "Grid", "tuning.max_jobs": 4, "tuning.ranges": {"a": [1, 2], "b": [True, False]}}
    text = plan(load_job(str(write_job(tmp_path, searching(**grid))))).text
    assert "max_jobs" not in text
    assert 'values = ["true", "false"]' in text
    assert "at most 4 x 20 min" in text


def test_long_values_to_try_count_in_the_request(tmp_path: Path) -> None:
    ranges = {f"r{n}": [f"{m:02}" + "x" * 250 for m in range(30)] for n in range(20)}
    job = load_job(str(write_job(tmp_path, searching(**{"tuning.ranges": ranges}))))
    with pytest.raises(SagefitError, match="131,072 fit") as refused:
        plan(job)
    assert "tuning.ranges" in str(refused.value.message)
