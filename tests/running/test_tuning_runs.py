"""Trials told as one attempt: whose they are, and in how few words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from sagefit.cloud.faults import Match
from sagefit.running import AttemptRecord, tuning
from sagefit.running.names import attempt_index, attempt_job
from sagefit.running.records import Search
from sagefit.running.tuning import searched
from sagefit_cloud.tuning import TuningJob

RUN = "digits-261121-120000"
SCHEDULED = "digits-0a1b2c3d-1111-2222-3333-0123456789ab"


@pytest.mark.parametrize(
    ("training_job", "job", "index"),
    [
        (f"{RUN}-0", f"{RUN}-0", 0),
        (f"{RUN}-12c", f"{RUN}-12c", 12),
        (f"{RUN}-0-001-0123abcd", f"{RUN}-0", 0),
        (f"{RUN}-3b-017-0123abcd", f"{RUN}-3b", 3),
        (f"{RUN}-0-10000-0123abcd", f"{RUN}-0", 0),
        (f"{SCHEDULED}-1", f"{SCHEDULED}-1", 1),
    ],
)
def test_a_trial_is_of_the_attempt_of_its_tuning_job(training_job: str, job: str, index: int) -> None:
    assert attempt_job(training_job) == job
    assert attempt_index(training_job) == index


def test_what_a_search_says_of_itself() -> None:
    search = Search("loss", 8, 3, 1, (f"{RUN}-0-005-0123abcd",), 0.25, f"{RUN}-0-002-0123abcd", "", {"rate": "0.1"})
    assert str(search) == "3 of 8 trials completed, 1 failed, 1 running, best loss=0.25"
    assert str(replace(search, most=None, failed=0, running=(), best=None)) == "3 trials completed"
    assert search.told_by == search.best_job
    assert replace(search, best_job="", failed_job="last").told_by == "last"


def test_faults_meet_trials_by_job_and_attempt() -> None:
    trial = f"{RUN}-1b-004-0123abcd"
    assert Match(job="digits", attempt=1).matches(trial, "ml.m5.large")
    assert not Match(job="digits", attempt=0).matches(trial, "ml.m5.large")
    assert Match(job="digits", attempt=1).matches(f"{RUN}-1-1000-0123abcd", "ml.m5.large")


@pytest.mark.parametrize(("status", "outcome"), [("InProgress", ""), ("Completed", "completed")])
def test_a_search_whose_list_is_behind_is_told_by_the_trial_that_is_known(
    monkeypatch: pytest.MonkeyPatch, status: str, outcome: str
) -> None:
    """AWS's lists may be behind, the embedded cloud's never is; so SageMaker's answers are replaced."""
    job: dict[str, Any] = {
        "CreationTime": datetime(2026, 11, 21, tzinfo=timezone.utc),
        "HyperParameterTuningJobStatus": status,
        "HyperParameterTuningJobConfig": {
            "HyperParameterTuningJobObjective": {"MetricName": "loss"}, "ResourceLimits": {},
        },
        "BestTrainingJob": {"TrainingJobName": f"{RUN}-0-002-0123abcd"},
    }  # fmt: skip
    pages = SimpleNamespace(paginate=lambda **_: [{"TrainingJobSummaries": []}])
    sagemaker = SimpleNamespace(describe_hyper_parameter_tuning_job=lambda **_: job, get_paginator=lambda _: pages)
    monkeypatch.setattr(tuning, "sagemaker", lambda: sagemaker)
    trial = f"{RUN}-0-001-0123abcd"
    read = AttemptRecord(0, "small", "ml.m5.large", training_job=trial)
    monkeypatch.setattr(tuning, "read_training_job", lambda *_: read)
    record = searched(f"{RUN}-0", trial, "us-east-1")
    assert (record.training_job, record.instance_type, record.outcome) == (f"{RUN}-0", "ml.m5.large", outcome)


def trial(number: int, status: str, **told: Any) -> AttemptRecord:
    name = f"{RUN}-0-{number:03}-0123abcd"
    return AttemptRecord(0, "small", "ml.m5.large", training_job=name, status=status, **told)


def search_of(
    monkeypatch: pytest.MonkeyPatch, trials: list[AttemptRecord], *, best: AttemptRecord | None
) -> AttemptRecord:
    """A search with these trials, the newest first; SageMaker's answers are replaced."""
    began = datetime(2026, 11, 21, tzinfo=timezone.utc)
    job: dict[str, Any] = {
        "CreationTime": began,
        "HyperParameterTuningEndTime": began,
        "HyperParameterTuningJobStatus": "Completed" if best else "Failed",
        "HyperParameterTuningJobConfig": {
            "HyperParameterTuningJobObjective": {"MetricName": "loss"}, "ResourceLimits": {},
        },
        "BestTrainingJob": {"TrainingJobName": best.training_job} if best else {},
    }  # fmt: skip
    summaries = [
        {"TrainingJobName": each.training_job, "TrainingJobStatus": each.status, "CreationTime": began}
        for each in trials
    ]
    pages = SimpleNamespace(paginate=lambda **_: [{"TrainingJobSummaries": summaries}])
    sagemaker = SimpleNamespace(describe_hyper_parameter_tuning_job=lambda **_: job, get_paginator=lambda _: pages)
    known = {each.training_job: each for each in trials}
    monkeypatch.setattr(tuning, "sagemaker", lambda: sagemaker)
    monkeypatch.setattr(tuning, "read_training_job", lambda name, *_: known[name])
    return searched(f"{RUN}-0", trials[0].training_job, "us-east-1")


def test_what_only_a_trial_had_is_not_told_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    fullest = trial(
        2, "Completed", host_peak_gib=7.5, gpu_peak_gib=20.0, growth="grew", idle="waited", filled_disk="full",
        lost_seconds=60.0, interruptions=1, start_seconds=9.0, model_is_empty=True, code="ab12", started_by="x",
    )  # fmt: skip
    best = trial(
        1, "Completed", host_peak_gib=2.0, gpu_peak_gib=5.0, interruptions=2, metrics={"loss": 0.1}, model="s3"
    )
    record = search_of(monkeypatch, [fullest, best], best=best)
    assert (record.host_peak_gib, record.gpu_peak_gib, record.code) == (7.5, 20.0, "ab12")
    assert (record.metrics, record.model, record.interruptions) == ({"loss": 0.1}, "s3", 3)
    assert (record.growth, record.idle, record.filled_disk, record.model_is_empty) == ("", "", "", False)
    assert (record.lost_seconds, record.start_seconds, record.started_by) == (None, None, "")


def test_a_search_that_failed_shows_the_memory_of_the_trial_that_failed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    died = trial(2, "Failed", host_peak_gib=1.0, outcome="host_memory", growth="grew", failure_reason="killed")
    lived = trial(1, "Completed", host_peak_gib=3.0, growth="did not")
    record = search_of(monkeypatch, [died, lived], best=None)
    assert (record.outcome, record.growth, record.failure_reason) == ("host_memory", "grew", "killed")
    assert record.host_peak_gib == 3.0


def test_a_search_that_ended_is_not_stopped() -> None:
    name = {"HyperParameterTuningJobName": "digits"}
    job = TuningJob(name, account="123456789012", region="us-east-1", partition="aws", jobs={})
    job.request_stop()
    assert job.status == "Stopping"
    job.status = "Completed"
    job.request_stop()
    assert job.status == "Completed"
