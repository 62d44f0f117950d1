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


def test_a_search_that_ended_is_not_stopped() -> None:
    name = {"HyperParameterTuningJobName": "digits"}
    job = TuningJob(name, account="123456789012", region="us-east-1", partition="aws", jobs={})
    job.request_stop()
    assert job.status == "Stopping"
    job.status = "Completed"
    job.request_stop()
    assert job.status == "Completed"
