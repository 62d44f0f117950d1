"""How much of an account is looked at to read a run: SageMaker's answers are replaced, and lists work as AWS's do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from running.test_watch import RUN
from sagefit.running import AttemptRecord, execution, ledger, processing
from sagefit.running.lists import MARGIN
from sagefit.running.records import StepRecord
from sagefit_cloud.extensions.requests import in_time, page

BEGAN = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
ENDED = BEGAN + timedelta(hours=2)
KINDS = {
    "list_training_jobs": "TrainingJob",
    "list_processing_jobs": "ProcessingJob",
    "list_hyper_parameter_tuning_jobs": "HyperParameterTuningJob",
}


@dataclass
class Account:
    """The jobs of an account, each made at a time, and how often each of its lists was asked."""

    jobs: dict[str, dict[str, datetime]] = field(default_factory=lambda: {kind: {} for kind in KINDS.values()})
    asked: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def get_paginator(self, operation: str) -> SimpleNamespace:
        kind = KINDS[operation]

        def paginate(*, NameContains: str, PaginationConfig: dict[str, int], **times: datetime) -> Iterator[Any]:  # noqa: N803
            between = {name: time.timestamp() for name, time in times.items()}
            made = [
                {f"{kind}Name": name, f"{kind}Status": "InProgress", "CreationTime": at, "LastModifiedTime": at}
                for name, at in sorted(self.jobs[kind].items(), key=lambda job: job[1])
            ]
            lines = [line for line in made if in_time(line, between)]
            request: dict[str, Any] = {"MaxResults": PaginationConfig["PageSize"]}
            while True:
                self.asked.append(operation)
                found = page(lines, request, f"{kind}Summaries", lambda line: NameContains in line[f"{kind}Name"])
                yield found
                if "NextToken" not in found:
                    return
                request["NextToken"] = found["NextToken"]

        return SimpleNamespace(paginate=paginate)

    def stop_training_job(self, *, TrainingJobName: str) -> None:  # noqa: N803
        self.stopped.append(TrainingJobName)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account with 250 jobs of others from the week before the run and 250 from the week after, of each kind."""
    found = Account()
    for module in (execution, processing):
        monkeypatch.setattr(module, "sagemaker", lambda: found)
    for made in found.jobs.values():
        for number in range(250):
            made[f"other-{number}"] = BEGAN - timedelta(days=7) + timedelta(minutes=number)
            made[f"later-{number}"] = ENDED + timedelta(days=7) + timedelta(minutes=number)
    monkeypatch.setattr(ledger, "_read", lambda name, *_: AttemptRecord(0, "small", training_job=name))
    monkeypatch.setattr(processing, "_read", lambda name, _: StepRecord(0, "prepare", processing_job=name))
    return found


def running(monkeypatch: pytest.MonkeyPatch, ended: datetime | None) -> None:
    described: dict[str, Any] = {"status": "SUCCEEDED" if ended else "RUNNING", "startDate": BEGAN}
    described |= {"stopDate": ended} if ended else {}
    states = SimpleNamespace(describe_execution=lambda **_: described, stop_execution=lambda **_: None)
    for module in (execution, ledger):
        monkeypatch.setattr(module, "step_functions", lambda: states)


def test_a_run_of_an_old_account_is_read_with_one_call_of_each_list(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(monkeypatch, ENDED)
    account.jobs["TrainingJob"][f"{RUN.name}-0"] = BEGAN + timedelta(seconds=1)
    account.jobs["TrainingJob"][f"{RUN.name}-1"] = ENDED + timedelta(seconds=1)
    account.jobs["ProcessingJob"][f"{RUN.name}-p0"] = BEGAN
    record = ledger.read_run(RUN)
    assert [attempt.training_job for attempt in record.attempts] == [f"{RUN.name}-0", f"{RUN.name}-1"]
    assert [step.processing_job for step in record.steps] == [f"{RUN.name}-p0"]
    assert sorted(account.asked) == ["list_processing_jobs", "list_training_jobs"]


def test_a_run_among_many_jobs_of_its_time_is_read_to_the_last_page(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(monkeypatch, ENDED)
    for number in range(250):
        account.jobs["TrainingJob"][f"beside-{number}"] = BEGAN + timedelta(seconds=number)
    account.jobs["TrainingJob"][f"{RUN.name}-0"] = BEGAN + timedelta(hours=1)
    assert [attempt.training_job for attempt in ledger.read_run(RUN).attempts] == [f"{RUN.name}-0"]
    assert account.asked.count("list_training_jobs") == 3


def test_clocks_that_differ_hide_no_job(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, ENDED)
    account.jobs["TrainingJob"][f"{RUN.name}-0"] = BEGAN - MARGIN
    account.jobs["TrainingJob"][f"{RUN.name}-1"] = ENDED + MARGIN
    assert len(ledger.read_run(RUN).attempts) == 2


def test_what_is_stopped_is_looked_for_from_the_start_of_the_run(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that goes on has no end: every job since its start is looked at, before and after it is stopped."""
    running(monkeypatch, None)
    account.jobs["TrainingJob"][f"{RUN.name}-0"] = BEGAN + timedelta(days=20)
    assert execution.stop(RUN) == account.stopped == [f"{RUN.name}-0"]
    assert {name: account.asked.count(name) for name in KINDS} == dict.fromkeys(KINDS, 2 * 3)
