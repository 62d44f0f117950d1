"""Watching: lost connections are waited out. A connection cannot be lost on purpose here, so reading is replaced."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from sagefit.cloud import control
from sagefit.errors import SagefitError
from sagefit.platform import Buckets, Platform
from sagefit.running import AttemptRecord, Run, RunRecord, following, watch
from sagefit.running.records import Search
from sagefit.target import Target

PLATFORM = Platform(
    schema_=1,
    name="dev",
    partition="aws",
    region="us-east-1",
    account_id="123456789012",
    buckets=Buckets(data="d", artifacts="a", checkpoints="c"),
)
RUN = Run("job-261121-120000", "job", PLATFORM)


def record(status: str, *attempts: AttemptRecord) -> RunRecord:
    return RunRecord(RUN, status, datetime.now(timezone.utc), None, list(attempts))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[RunRecord | Exception]:
    """What reading the run gives, call by call; no waiting in between."""
    queue: list[RunRecord | Exception] = []

    def read(run: Run, *, known: dict[str, AttemptRecord], **_: object) -> RunRecord:  # noqa: ARG001
        answer = queue.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(following, "read_run", read)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return queue


def test_a_lost_connection_is_waited_out(
    answers: list[RunRecord | Exception], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    running = AttemptRecord(0, "small", "ml.m5.large", training_job="job-261121-120000-0", status="Training")
    done = AttemptRecord(0, "small", "ml.m5.large", training_job="job-261121-120000-0", outcome="completed")
    lost = EndpointConnectionError(endpoint_url="https://states.us-east-1.amazonaws.com")
    answers += [record("RUNNING", running), lost, lost, record("RUNNING", running), record("SUCCEEDED", done)]
    assert watch(RUN, Target("aws", tmp_path)).succeeded
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "attempt 0 small on ml.m5.large: Training",
        "connection lost, trying again; the run goes on",
        "connection lost, trying again; the run goes on",
        "attempt 0 small on ml.m5.large: completed",
    ]


def test_the_log_of_a_trial_is_read_once_after_its_end(
    answers: list[RunRecord | Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    class Logs:
        def __init__(self, *_: str) -> None: ...

        def new_lines(self, job: str) -> list[str]:
            asked.append(job)
            return []

    def searching(*running: str, outcome: str = "") -> AttemptRecord:
        search = Search("loss", 2, 0, 0, running, None, "", "", {})
        return AttemptRecord(0, "small", training_job="job-261121-120000-0", outcome=outcome, search=search)

    monkeypatch.setattr(following, "LogReader", Logs)
    answers += [record("RUNNING", searching(*running)) for running in (["t1"], ["t2"], ["t2"])]
    answers.append(record("SUCCEEDED", searching(outcome="completed")))
    watch(RUN, Target("aws", tmp_path), logs=True)
    assert asked == ["t1", "t1", "t2", "t2", "t2"]


def test_an_embedded_cloud_that_is_gone_ends_the_watch(
    answers: list[RunRecord | Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(control, "status", lambda: None)
    answers.append(EndpointConnectionError(endpoint_url="http://127.0.0.1:1"))
    with pytest.raises(SagefitError, match="the embedded cloud stopped"):
        watch(RUN, Target("local", tmp_path))
