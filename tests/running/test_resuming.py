"""Checkpoints of one run for another: what is copied, what is refused, and what a failure leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from job_files import write_job
from running.test_watch import PLATFORM as ONE
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.machine import Definition
from sagefit.planning import plan
from sagefit.running import AttemptRecord, Run, clients, ledger, resuming

BUCKET = "checkpoints"
PLATFORM = ONE.model_copy(update={"buckets": ONE.buckets.model_copy(update={"checkpoints": BUCKET})})
OLD = Run("tune-261121-120000", "tune", PLATFORM)
NEW = "tune-261121-130000"
FOLDER = "jobs/tune/"
LARGE = bytes(9 * 1024**2)  # S3 copies it in parts


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The bucket of checkpoints, with three files of the old run, and one of a run whose name begins alike."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    clients.s3.cache_clear()
    with mock_aws():
        s3: Any = boto3.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        for key, body in {"a/step-1.pt": b"1", "a/step 2.pt": b"22", "large": LARGE}.items():
            s3.put_object(Bucket=BUCKET, Key=f"{FOLDER}{OLD.name}/{key}", Body=body)
        s3.put_object(Bucket=BUCKET, Key=f"{FOLDER}{OLD.name}0/other", Body=b"")
        yield s3
    clients.s3.cache_clear()


def files(s3: Any, run: str) -> dict[str, int]:
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{FOLDER}{run}/").get("Contents", [])
    return {each["Key"].removeprefix(f"{FOLDER}{run}/"): each["Size"] for each in listed}


def test_all_files_of_a_run_are_copied_and_stay(bucket: Any) -> None:
    said: list[str] = []
    found = resuming.checkpoints_of(OLD)
    assert str(found) == "3 files, 9.4 MB"
    resuming.copy(found, NEW, said.append)
    assert files(bucket, NEW) == files(bucket, OLD.name) == {"a/step-1.pt": 1, "a/step 2.pt": 2, "large": len(LARGE)}
    assert bucket.get_object(Bucket=BUCKET, Key=f"{FOLDER}{NEW}/large")["Body"].read() == LARGE
    assert said == [f"copying the checkpoints of {OLD.name}: 3 files, 9.4 MB"]


@pytest.mark.parametrize("happens", ["replaced", "deleted"])
def test_checkpoints_that_change_meanwhile_leave_nothing_behind(bucket: Any, happens: str) -> None:
    found = resuming.checkpoints_of(OLD)
    key = f"{FOLDER}{OLD.name}/large"
    if happens == "replaced":
        bucket.put_object(Bucket=BUCKET, Key=key, Body=b"another")
    else:
        bucket.delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(SagefitError, match=f"the checkpoints of {OLD.name} changed while they were copied"):
        resuming.copy(found, NEW, print)
    assert files(bucket, NEW) == {}


def test_a_folder_that_somebody_else_writes_to_is_not_taken(bucket: Any) -> None:
    bucket.put_object(Bucket=BUCKET, Key=f"{FOLDER}{NEW}/theirs", Body=b"")
    with pytest.raises(SagefitError, match="does not hold what was copied"):
        resuming.copy(resuming.checkpoints_of(OLD), NEW, print)
    assert files(bucket, NEW) == {"theirs": 0}


def test_an_interrupt_leaves_nothing_behind(bucket: Any) -> None:
    def interrupt(_: str) -> None:
        bucket.put_object(Bucket=BUCKET, Key=f"{FOLDER}{NEW}/a/step-1.pt", Body=b"1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resuming.copy(resuming.checkpoints_of(OLD), NEW, interrupt)
    assert files(bucket, NEW) == {}


@pytest.mark.usefixtures("bucket")
def test_a_refusal_names_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = resuming.checkpoints_of(OLD)
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "CopyObject")

    def refuse(*_: Any, **__: Any) -> None:
        raise denied

    monkeypatch.setattr(clients.s3(), "copy", refuse)
    with pytest.raises(SagefitError) as told:
        resuming.copy(found, NEW, print)
    assert "cannot be copied: An error occurred (AccessDenied)" in told.value.message
    assert told.value.hint
    assert "s3:GetObject, s3:PutObject and s3:DeleteObject on checkpoints/jobs/tune/*" in told.value.hint


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (
            {"tuning": {"objective": {"metric": "loss", "type": "Minimize"}, "max_jobs": 2, "max_parallel_jobs": 1,
                        "ranges": {"lr": {"min": 0.1, "max": 1}}},
             "metrics": [{"name": "loss", "regex": "loss=([0-9.]+)"}]},
            "tune searches hyperparameters",
        ),
        ({"resources": {"checkpoints": False}}, "resources.checkpoints is false"),
    ],
)  # fmt: skip
def test_a_job_that_reads_no_checkpoints_is_refused(tmp_path: Path, changes: dict[str, Any], rule: str) -> None:
    job = load_job(write_job(tmp_path, {"name": "tune", **changes}))
    with pytest.raises(SagefitError, match=rule):
        resuming.resumable(job, PLATFORM, OLD, print)


def test_another_platform_is_refused(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path, {"name": "tune"}))
    with pytest.raises(SagefitError, match="ran on the platform dev, and tune runs on prod"):
        resuming.resumable(job, PLATFORM.model_copy(update={"name": "prod"}), OLD, print)


def test_what_changed_since_is_said(tmp_path: Path) -> None:
    planned = plan(load_job(write_job(tmp_path, {"name": "tune"})))
    name = planned.attempts[0].name
    definition = Definition(
        "tune", {"code.digest": "b" * 16}, list(planned.attempts), [],
        {name: {"epochs": "3", "lr": "0.1", "api_token": "new"}}, "", None, {}, (), None,
    )  # fmt: skip
    hyperparameters = {"epochs": "2", "lr": "0.1", "api_token": "old", "batch": "8"}
    before = AttemptRecord(0, name, hyperparameters=hyperparameters, code="a" * 16)
    assert resuming.differences(definition, before) == [
        "code",
        "hyperparameters.api_token: (not shown) -> (not shown)",
        "hyperparameters.batch: 8 -> not set",
        "hyperparameters.epochs: 2 -> 3",
    ]
    same = AttemptRecord(4, "gone", hyperparameters={"epochs": "3", "lr": "0.1", "api_token": "new"}, code="b" * 16)
    assert resuming.differences(definition, same) == []


@pytest.mark.parametrize(
    ("given", "run"), [('{"resumes": "a"}', "a"), ("{}", ""), ("[]", ""), ("no", ""), ('{"resumes": 3}', ""), ("", "")]
)
def test_the_input_of_an_execution_tells_what_it_resumes(given: str, run: str) -> None:
    assert ledger._resumes(given) == run
