"""Built-in XGBoost: a request that names the algorithm's image and nothing to run."""

from __future__ import annotations

import io
import random
import tarfile
import zlib
from typing import Any

import pytest

from cloud.aws_user import Aws, statuses

IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"
ROUNDS = 5


def rows(count: int, seed: int) -> list[list[float]]:
    """A label and three features, of which two make it up."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        x = [draw.random() for _ in range(3)]
        found.append([3 * x[0] + (x[1] > 0.5), *x])
    return found


def csv(table: list[list[float]]) -> str:
    return "".join(",".join(f"{value:.5f}" for value in row) + "\n" for row in table)


def libsvm(table: list[list[float]]) -> str:
    return "".join(
        f"{row[0]:.5f} " + " ".join(f"{i}:{value:.5f}" for i, value in enumerate(row[1:], 1)) + "\n" for row in table
    )


def request(aws: Aws, name: str, *, kind: str = "text/csv", train: str = "", **changes: Any) -> dict[str, Any]:
    write = csv if kind == "text/csv" else libsvm
    aws.put(f"{name}/train/part", train or write(rows(300, 1)))
    aws.put(f"{name}/validation/part", write(rows(100, 2)))
    made = aws.request("", TrainingJobName=name)
    del made["AlgorithmSpecification"]["ContainerEntrypoint"], made["AlgorithmSpecification"]["ContainerArguments"]
    made["AlgorithmSpecification"]["TrainingImage"] = IMAGE
    made["HyperParameters"] = {"num_round": str(ROUNDS), "objective": "reg:squarederror", "eta": "0.5", "seed": "1"}
    made["InputDataConfig"] = [
        {
            "ChannelName": channel,
            "ContentType": kind,
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://bucket-data/{name}/{channel}/"}},
        }
        for channel in ("train", "validation")
    ]
    return made | changes


def run(aws: Aws, made: dict[str, Any]) -> dict[str, Any]:
    aws.client("sagemaker").create_training_job(**made)
    return aws.wait(made["TrainingJobName"], 300)  # its environment may have to be built


@pytest.mark.parametrize("kind", ["text/csv", "text/libsvm"])
def test_xgboost_trains_without_code_or_metric_definitions(aws: Aws, kind: str) -> None:
    made = request(aws, f"xgb-{kind[5:]}", kind=kind)
    job = run(aws, made)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    lines = [line for line in aws.lines(job["TrainingJobName"]) if line.startswith("[")]
    assert [line.split("#011")[0] for line in lines] == [f"[{number}]" for number in range(ROUNDS)]
    metrics = {item["MetricName"]: item["Value"] for item in job["FinalMetricDataList"]}
    assert set(metrics) == {"train:rmse", "validation:rmse", "sagefit:host_memory_peak_gib"}
    assert lines[-1].endswith(f"validation-rmse:{metrics['validation:rmse']:.5f}")
    assert metrics["validation:rmse"] < 0.3
    assert 0.01 < metrics["sagefit:host_memory_peak_gib"] < 0.5
    with tarfile.open(fileobj=io.BytesIO(aws.get(job["ModelArtifacts"]["S3ModelArtifacts"]))) as archive:
        assert archive.getnames() == ["xgboost-model"]


def test_an_interrupted_algorithm_goes_on_from_its_checkpoint(aws: Aws) -> None:
    name = "xgb-resumes"
    made = request(aws, name)
    made["CheckpointConfig"] = {"S3Uri": f"s3://bucket-checkpoints/{name}"}
    assert run(aws, made)["TrainingJobStatus"] == "Completed"
    first = {item["MetricName"]: item["Value"] for item in aws.describe(name)["FinalMetricDataList"]}
    assert aws.keys("bucket-checkpoints", name) == [f"{name}/xgboost-checkpoint.{number}" for number in range(ROUNDS)]
    for number in range(3, ROUNDS):
        key = f"{name}/xgboost-checkpoint.{number}"
        aws.client("s3").delete_object(Bucket="bucket-checkpoints", Key=key)

    again = run(aws, made | {"TrainingJobName": f"{name}-again"})
    assert again["TrainingJobStatus"] == "Completed"
    lines = [line.split("#011")[0] for line in aws.lines(f"{name}-again")]
    assert lines[:2] == ["Checkpoint loaded from xgboost-checkpoint.2", "Resuming from iteration 3"]
    assert [line for line in lines if line.startswith("[")] == ["[3]", "[4]"]
    metrics = {item["MetricName"]: item["Value"] for item in again["FinalMetricDataList"]}
    assert metrics["validation:rmse"] == pytest.approx(first["validation:rmse"], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"HyperParameters": {"eta": "0.5"}}, "ClientError: Missing required hyperparameter: num_round"),
        ({"HyperParameters": {"num_rounds": "5"}}, "ClientError: Extraneous hyperparameter found: num_rounds"),
        ({"HyperParameters": {"num_round": "5", "eta": "2"}}, "ClientError: Hyperparameter eta: 2 is not in [0, 1]"),
        ({"HyperParameters": {"num_round": "5", "objective": "reg:nothing"}}, "ClientError: XGB train call failed"),
        ({"train": "label,a,b\n1,2,3\n"}, "ClientError: Non-numeric value 'label' found in the first line"),
        ({"train": "1,2,3\n4,5\n"}, "ClientError: Failed to load csv data of file 'part'"),
        (
            {"ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 10}},
            "ClientError: the embedded cloud trains built-in algorithms on one host, not 2",
        ),
    ],
)
def test_a_mistake_fails_the_job_and_is_named(aws: Aws, change: dict[str, Any], reason: str) -> None:
    name = f"xgb-wrong-{zlib.crc32(reason.encode())}"
    job = run(aws, request(aws, name, **change))
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith(reason)


def test_an_algorithm_without_a_stand_in_is_refused(aws: Aws) -> None:
    made = request(aws, "other-algorithm")
    made["AlgorithmSpecification"]["TrainingImage"] = "382416733822.dkr.ecr.us-east-1.amazonaws.com/kmeans:1"
    job = run(aws, made)
    assert statuses(job)[-1] == "Failed"
    assert "cannot run image 382416733822.dkr.ecr.us-east-1.amazonaws.com/kmeans:1" in job["FailureReason"]
