"""Processing steps in a plan: on the page, in what changes, and what is not as Sagefit writes it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from review.plans import found, reviewed
from review.test_jobs import definition, machine
from sagefit.machine.definition import read_definition
from sagefit.reviewing import markdown

IMAGE = "173754725891.dkr.ecr.us-east-1.amazonaws.com/sagemaker-spark-processing:3.5-cpu"
DIGEST = "0123456789abcdef"
KEY = "arn:aws:kms:us-east-1:123456789012:key/volumes"


def request(**changes: Any) -> dict[str, Any]:
    return {
        "RoleArn": "arn:aws:iam::123456789012:role/r",
        "AppSpecification": {
            "ImageUri": IMAGE,
            "ContainerEntrypoint": ["smspark-submit", "/opt/ml/processing/input/code/features.py"],
            "ContainerArguments": ["--fast"],
        },
        "ProcessingInputs": [
            {"InputName": "code", "S3Input": {"S3Uri": f"s3://data/jobs/x/inputs/features/code/{DIGEST}/"}},
            {"InputName": "raw", "S3Input": {"S3Uri": "s3://raw/clicks/", "S3DataType": "S3Prefix"}},
        ],
        "ProcessingOutputConfig": {
            "Outputs": [{"OutputName": "rows", "S3Output": {"S3Uri.$": "States.Format('s3://a/{}/rows', $$.x)"}}]
        },
        "Environment": {"TOKEN": "not for the page"},
        "ProcessingResources": {
            "ClusterConfig": {
                "InstanceType": "ml.m5.xlarge",
                "InstanceCount": 2,
                "VolumeSizeInGB": 30,
                "VolumeKmsKeyId": KEY,
            }
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 7200},
    } | changes


def with_step(**changes: Any) -> dict[str, Any]:
    """A job whose first attempt comes after a step, cut to what is read."""
    made = copy.deepcopy(definition(name="no-such-job", types=("ml.m5.large",)))
    states, label = made["States"], "processing features"
    states["again"]["Choices"].append({"StringEquals": label, "Next": f"{label}: submit"})
    states[f"{label}: submit"] = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sagemaker:createProcessingJob",
        "Parameters": request(**changes),
    }
    for state in ("refused", "refusal", "wait", "judge", "completed", "ended"):
        states[f"{label}: {state}"] = {"Type": "Pass"}
    for state in ("failed", "reason alone", "reason and message"):
        states[f"processing: {state}"] = {"Type": "Pass"}
    return made


def test_a_step_is_read_back_in_the_words_of_a_job_file() -> None:
    read = read_definition(with_step())
    assert read is not None
    assert read.strange == ()
    assert [attempt.name for attempt in read.attempts] == ["main"]
    words = {word: value for word, value in read.words.items() if word.startswith("processing.")}
    assert words == {
        "processing.features.image": IMAGE,
        "processing.features.code.entry_point": "features.py",
        "processing.features.code.arguments": ["--fast"],
        "processing.features.code.digest": DIGEST,
        "processing.features.inputs.raw.uri": "s3://raw/clicks/",
        "processing.features.inputs.raw.distribution": None,
        "processing.features.inputs.raw.s3_data_type": "S3Prefix",
        "processing.features.outputs": {"rows": "States.Format('s3://a/{}/rows', $$.x)"},
        "processing.features.environment.TOKEN": "not for the page",
        "processing.features.resources.instance_type": "ml.m5.xlarge",
        "processing.features.resources.instance_count": 2,
        "processing.features.resources.volume_size_gb": 30,
        "processing.features.resources.max_runtime": 7200,
        "processing.features.resources.volume_kms_key_arn": KEY,
    }


def test_the_page_shows_steps_and_what_changes_in_them() -> None:
    larger = {"ClusterConfig": {"InstanceType": "ml.m5.2xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30}}
    text = markdown(
        reviewed(machine(with_step(), with_step(ProcessingResources=larger, Environment={"TOKEN": "another"})))
    )
    assert f"| `processing features` | `{IMAGE}` | `2 x ml.m5.2xlarge` | 0.92 | 2 h |" in text
    assert "+ processing.features.resources.instance_type: ml.m5.2xlarge" in text
    assert "processing.features.environment.TOKEN" in text
    assert "not for the page" not in text
    assert "another" not in text


@pytest.mark.parametrize(
    "changes",
    [
        {"RoleArn": "arn:aws:iam::123456789012:role/admin"},
        {"NetworkConfig": {"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}}},
        {"ProcessingOutputConfig": {"Outputs": [], "KmsKeyId": "arn:aws:kms:us-east-1:123456789012:key/1"}},
    ],
    ids=["role", "network", "key"],
)
def test_a_step_that_is_protected_otherwise_than_training_is_told(changes: dict[str, Any]) -> None:
    assert "job-unreadable" in [rule for rule, _ in found(machine(with_step(), with_step(**changes)))]


def test_a_state_that_no_step_has_is_told() -> None:
    changed = with_step()
    changed["States"]["processing features: sneak"] = {"Type": "Pass"}
    assert "job-unreadable" in [rule for rule, _ in found(machine(with_step(), changed))]
