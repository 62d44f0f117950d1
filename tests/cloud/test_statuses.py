"""Statuses of training jobs and their messages, beside the documentation that botocore carries."""

from __future__ import annotations

import re
from typing import Any

import pytest
from botocore.session import get_session

from sagefit_cloud import jobs

SAGEMAKER: Any = get_session().get_service_model("sagemaker")
REQUEST = {
    "TrainingJobName": "job",
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
    "StoppingCondition": {"MaxRuntimeInSeconds": 60},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
}


@pytest.fixture
def job() -> jobs.TrainingJob:
    return jobs.TrainingJob(REQUEST, account="123456789012", region="us-east-1", partition="aws")


def documented(member: str) -> set[str]:
    """What the documentation lists of a member of a transition, without the full stops at the end."""
    text = SAGEMAKER.shape_for("SecondaryStatusTransition").members[member].documentation
    return {item.strip().rstrip(".") for item in re.findall(r"<p>([^<]+)</p>", text)}


def test_every_status_is_one_that_aws_has_and_still_uses() -> None:
    known = set(SAGEMAKER.shape_for("SecondaryStatus").enum)
    no_more = {"LaunchingMLInstances", "PreparingTrainingStack", "PreparingTraining", "DownloadingTrainingImage"}
    assert set(jobs._MESSAGES) <= known - no_more


def test_what_is_said_of_a_job_that_ends_well_is_what_aws_says(job: jobs.TrainingJob) -> None:
    assert job.describe()["SecondaryStatusTransitions"][0]["StatusMessage"] in documented("StatusMessage")
    for status in ("Downloading", "Training", "Uploading"):
        job.advance(status)
    job.finish("Completed", "Completed")
    told = {step["Status"]: step["StatusMessage"] for step in job.describe()["SecondaryStatusTransitions"]}
    assert list(told) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert {told["Starting"], told["Training"].rstrip(".")} <= documented("StatusMessage")
    assert told["Starting"] == "Preparing the instances for training"


def test_a_job_that_never_got_its_instances_did_not_prepare_them(job: jobs.TrainingJob) -> None:
    job.finish("Failed", "Failed", reason="CapacityError: no such instance")
    first, last = job.describe()["SecondaryStatusTransitions"]
    assert first["StatusMessage"] == "Starting the training job"
    assert last["StatusMessage"] == "CapacityError: no such instance"
