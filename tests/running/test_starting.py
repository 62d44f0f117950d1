"""Starting a run: names of one second, checkpoints of an earlier run, and a job that was never applied.

Step Functions, SageMaker and S3 are moto's: races of one second cannot be had otherwise.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from job_files import write_job
from review.test_jobs import definition
from running.test_resuming import BUCKET, FOLDER, PLATFORM, files
from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.running import Run, clients, starting

ROLE = "arn:aws:iam::123456789012:role/states"
MACHINE = {"StartAt": "wait", "States": {"wait": {"Type": "Wait", "Seconds": 60, "End": True}}}
NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
Cloud = tuple[Any, Any]


class Clock:
    """A clock that goes on by a second each time somebody sleeps."""

    def __init__(self) -> None:
        self.now_is = NOON
        self.slept = itertools.count(1)

    def now(self, _zone: timezone) -> datetime:
        return self.now_is

    def sleep(self, _seconds: float) -> None:
        next(self.slept)
        self.now_is += timedelta(seconds=1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(starting, "datetime", made)
    monkeypatch.setattr("time.sleep", made.sleep)
    return made


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Cloud]:  # noqa: ARG001 - time stands still first
    """Clients of Step Functions and S3 in an account in which the job is applied."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    cached = (clients.s3, clients.step_functions, clients.sagemaker)
    for each in cached:
        each.cache_clear()
    with mock_aws():
        states: Any = boto3.client("stepfunctions")
        s3: Any = boto3.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        states.create_state_machine(name="sagefit-dev-tune", definition=json.dumps(MACHINE), roleArn=ROLE)
        yield states, s3
    for each in cached:
        each.cache_clear()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return load_job(write_job(tmp_path, {"name": "tune"}))


def ended(cloud: Cloud, job: Job) -> Run:
    """A run that was stopped and left a checkpoint."""
    states, s3 = cloud
    run = starting.start(job, PLATFORM)
    states.stop_execution(executionArn=run.arn)
    s3.put_object(Bucket=BUCKET, Key=f"{FOLDER}{run.name}/step-1.pt", Body=b"1")
    return run


def given(cloud: Cloud, run: Run) -> dict[str, str]:
    read: dict[str, str] = json.loads(cloud[0].describe_execution(executionArn=run.arn)["input"])
    return read


def test_two_starts_of_one_second_are_two_runs(cloud: Cloud, job: Job) -> None:
    first, second = starting.start(job, PLATFORM), starting.start(job, PLATFORM)
    assert (first.name, second.name) == ("tune-261121-120000", "tune-261121-120001")
    assert given(cloud, first).keys() == {"start"}
    assert given(cloud, first) != given(cloud, second)


def test_a_job_that_was_never_applied_names_the_way(cloud: Cloud, job: Job, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    unknown = load_job(write_job(other, {"name": "unknown"}))
    old = ended(cloud, job)
    for resume in (None, old):
        with pytest.raises(SagefitError, match="unknown is not applied on the platform dev") as told:
            starting.start(unknown, PLATFORM, resume=resume)
        assert told.value.hint
        assert "plan" in told.value.hint


def test_a_run_begins_with_a_copy_of_checkpoints(cloud: Cloud, job: Job) -> None:
    old, said = ended(cloud, job), list[str]()
    run = starting.start(job, PLATFORM, resume=old, tell=said.append)
    assert given(cloud, run)["resumes"] == old.name
    assert files(cloud[1], run.name) == files(cloud[1], old.name) == {"step-1.pt": 1}
    assert said == [f"copying the checkpoints of {old.name}: 1 file, 1 byte"]


def test_a_name_that_somebody_prepares_is_left_to_them(cloud: Cloud, job: Job) -> None:
    old = ended(cloud, job)
    cloud[1].put_object(Bucket=BUCKET, Key=f"{FOLDER}tune-261121-120000/theirs", Body=b"")
    cloud[1].put_object(Bucket=BUCKET, Key=f"{FOLDER}tune-261121-120001/theirs", Body=b"")
    run = starting.start(job, PLATFORM, resume=old)
    assert run.name == "tune-261121-120002"
    assert files(cloud[1], "tune-261121-120001") == {"theirs": 0}


@pytest.mark.parametrize("code", ["ExecutionAlreadyExists", "StateMachineDoesNotExist", "AccessDeniedException"])
def test_a_start_that_fails_leaves_no_copy(cloud: Cloud, job: Job, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    old = ended(cloud, job)
    client, asked = clients.step_functions(), list[str]()
    begin = client.start_execution

    def start(*, stateMachineArn: str, name: str, input: str) -> Any:  # noqa: N803 - the API's names
        asked.append(name)
        if len(asked) == 1:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "StartExecution")
        return begin(stateMachineArn=stateMachineArn, name=name, input=input)

    monkeypatch.setattr(client, "start_execution", start)
    if code == "ExecutionAlreadyExists":
        assert starting.start(job, PLATFORM, resume=old).name == asked[1] != asked[0]
    else:
        expected = SagefitError if code == "StateMachineDoesNotExist" else ClientError
        with pytest.raises(expected):
            starting.start(job, PLATFORM, resume=old)
    assert files(cloud[1], asked[0]) == {}


def applied(cloud: Cloud, **more: Any) -> None:
    """Another machine of the job, as Sagefit writes it."""
    machine = definition(name="tune")
    for state in machine["States"].values():
        if "HyperParameters" in state.get("Parameters", {}):
            state["Parameters"] |= more
    arn = PLATFORM.state_machine_arn("tune")
    cloud[0].update_state_machine(stateMachineArn=arn, definition=json.dumps(machine))


def test_what_is_applied_counts_and_not_the_job_file(cloud: Cloud, job: Job) -> None:
    """The machine that is there reads no checkpoints, whatever the job file says by now."""
    old = ended(cloud, job)
    applied(cloud)
    with pytest.raises(SagefitError, match=r"resources\.checkpoints is false"):
        starting.start(job, PLATFORM, resume=old)


def test_what_changed_since_the_earlier_run_is_said(cloud: Cloud, job: Job) -> None:
    old, said = ended(cloud, job), list[str]()
    boto3.client("sagemaker").create_training_job(
        TrainingJobName=f"{old.name}-0",
        HyperParameters={"per_device_train_batch_size": "16"},
        AlgorithmSpecification={"TrainingImage": "1.dkr.ecr.us-east-1.amazonaws.com/i:1", "TrainingInputMode": "File"},
        RoleArn=ROLE,
        OutputDataConfig={"S3OutputPath": "s3://a/"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )
    applied(cloud, CheckpointConfig={"S3Uri.$": "States.Format('s3://c/jobs/tune/{}/', $$.Execution.Name)"})
    starting.start(job, PLATFORM, resume=old, tell=said.append)
    (told,) = [each for each in said if each.startswith("look again: since ")]
    assert "hyperparameters.per_device_train_batch_size: 16 -> 32" in told
