"""The API of training jobs: what it refuses, and what it says about jobs."""

from __future__ import annotations

import copy
import time
from datetime import timedelta
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cloud.aws_user import ROLE, Aws, statuses

SPOT = {"EnableManagedSpotTraining": True}


def refusal(aws: Aws, request: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        aws.client("sagemaker").create_training_job(**request)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def changed(request: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The request with one field set, or removed where the value is None."""
    result = copy.deepcopy(request)
    *parents, last = path.split(".")
    target: Any = result
    for name in parents:
        target = target[int(name)] if name.isdigit() else target[name]
    if value is None:
        del target[last]
    else:
        target[last] = value
    return result


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (
            "TrainingJobName",
            "ends-with-",
            "'trainingJobName' failed to satisfy constraint: Member must satisfy reg",
        ),
        ("TrainingJobName", "x" * 64, "Member must have length less than or equal to 63"),
        ("RoleArn", "arn:aws:iam::12:role/short", "'roleArn'"),
        ("ResourceConfig.InstanceType", "ml.m5.huge", "Member must satisfy enum value set"),
        ("ResourceConfig.KeepAlivePeriodInSeconds", 999999, "value less than or equal to 21600"),
        ("ResourceConfig.InstanceCount", None, "InstanceType and InstanceCount are required"),
        ("ResourceConfig", None, "ResourceConfig is required"),
        ("StoppingCondition", None, "StoppingCondition is required"),
        ("Environment", {"9X": "1"}, "regular expression pattern"),
        ("Environment", {"X": "v" * 513}, "length less than or equal to 512"),
        ("HyperParameters", {f"p{i}": "1" for i in range(101)}, "length less than or equal to 100"),
        ("Tags", [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}], "Duplicate tag keys"),
        ("AlgorithmSpecification.AlgorithmName", "also", "exactly one of TrainingImage and AlgorithmName"),
        ("AlgorithmSpecification.TrainingInputMode", "Fast", "enum value set: [Pipe, File, FastFile]"),
        ("AlgorithmSpecification.MetricDefinitions", [{"Name": "m", "Regex": "("}], "Invalid regex"),
        ("StoppingCondition.MaxWaitTimeInSeconds", 900, "only supported when EnableManagedSpotTraining is set to true"),
        ("EnableManagedSpotTraining", True, "MaxWaitTimeInSeconds is required"),
        ("InputDataConfig.0.CompressionType", "Gzip", "only supported with the Pipe input mode"),
        ("InputDataConfig.0.DataSource.S3DataSource.S3DataType", "AugmentedManifestFile", "Pipe input mode"),
        (
            "InputDataConfig.0.DataSource.S3DataSource.S3Uri",
            "s3://bucket-data/none/",
            "No S3 objects found under S3 URL",
        ),
        ("OutputDataConfig.S3OutputPath", "s3://not-there/x", "Access denied to OutputDataConfig S3 bucket"),
        ("RoleArn", ROLE + "-none", "Could not assume role"),
    ],
)
def test_bad_requests_are_refused(aws: Aws, path: str, value: Any, says: str) -> None:
    code, message = refusal(aws, changed(aws.request("pass"), path, value))
    assert code == "ValidationException"
    assert says in message


@pytest.mark.parametrize(
    ("limits", "keep_alive", "says"),
    [
        ({"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 99}, 0, "equal to or greater than MaxRuntimeInSeconds"),
        ({"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 100}, 60, "KeepAlivePeriodInSeconds is not supported"),
    ],
)
def test_spot_has_rules(aws: Aws, limits: dict[str, int], keep_alive: int, says: str) -> None:
    request = aws.request("pass", StoppingCondition=limits) | SPOT
    request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = keep_alive
    assert says in refusal(aws, request)[1]


def test_a_name_is_used_once(aws: Aws) -> None:
    request = aws.request("pass")
    aws.client("sagemaker").create_training_job(**request)
    code, message = refusal(aws, request)
    assert code == "ResourceInUse"
    assert "Training job names must be unique within an AWS account and region" in message


@pytest.mark.parametrize("action", ["describe_training_job", "stop_training_job", "delete_training_job"])
def test_unknown_jobs(aws: Aws, action: str) -> None:
    with pytest.raises(ClientError, match=r"ValidationException.*Requested resource not found"):
        getattr(aws.client("sagemaker"), action)(TrainingJobName="nobody")


def test_an_ended_job_cannot_be_stopped_but_deleted(aws: Aws) -> None:
    job = aws.run("pass")
    sagemaker = aws.client("sagemaker")
    with pytest.raises(ClientError, match="is in status Completed"):
        sagemaker.stop_training_job(TrainingJobName=job["TrainingJobName"])
    sagemaker.delete_training_job(TrainingJobName=job["TrainingJobName"])
    with pytest.raises(ClientError, match="not found"):
        aws.describe(job["TrainingJobName"])


def test_tags(aws: Aws) -> None:
    request = aws.request("pass", Tags=[{"Key": "a", "Value": "1"}])
    sagemaker = aws.client("sagemaker")
    arn = sagemaker.create_training_job(**request)["TrainingJobArn"]
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "b", "Value": "2"}])
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]


def test_jobs_are_listed_by_name_and_status_in_pages(aws: Aws) -> None:
    names = [aws.start("pass", TrainingJobName=f"listed-{index}") for index in range(3)]
    names.append(aws.start("raise SystemExit(1)", TrainingJobName="listed-bad"))
    for name in names:
        aws.wait(name)
    pages = aws.client("sagemaker").get_paginator("list_training_jobs")

    def listed(**asked: Any) -> list[str]:
        found = pages.paginate(NameContains="listed-", PaginationConfig={"PageSize": 2}, **asked).build_full_result()
        return [job["TrainingJobName"] for job in found["TrainingJobSummaries"]]

    assert listed() == names
    assert listed(SortOrder="Descending") == names[::-1]
    assert listed(SortBy="Name") == sorted(names)
    assert listed(StatusEquals="Failed") == ["listed-bad"]


def test_a_page_of_a_list_is_filtered_after_it_was_taken(aws: Aws) -> None:
    """So a page can be empty and not be the last one, as on AWS; times are asked for before."""
    sagemaker = aws.client("sagemaker")
    for name in ("paged-mine", "paged-other", "paged-others"):
        aws.wait(aws.start("pass", TrainingJobName=name))
    created, short = aws.describe("paged-mine")["CreationTime"], timedelta(milliseconds=1)
    since = created - short
    asked = {"CreationTimeAfter": since, "MaxResults": 2, "SortBy": "CreationTime", "SortOrder": "Descending"}

    def names(page: dict[str, Any]) -> list[str]:
        return [job["TrainingJobName"] for job in page["TrainingJobSummaries"]]

    first = sagemaker.list_training_jobs(NameContains="paged-mine", **asked)
    assert names(first) == []
    last = sagemaker.list_training_jobs(NameContains="paged-mine", NextToken=first["NextToken"], **asked)
    assert (names(last), "NextToken" in last) == (["paged-mine"], False)
    running = sagemaker.list_training_jobs(StatusEquals="InProgress", **asked)
    assert (names(running), "NextToken" in running) == ([], True)
    between = asked | {"CreationTimeBefore": created + short, "MaxResults": 1}
    alone = sagemaker.list_training_jobs(**between)
    assert (names(alone), "NextToken" in alone) == (["paged-mine"], False)


def test_quota_limits_what_runs_at_once(aws: Aws) -> None:
    quotas = aws.client("service-quotas")
    known = quotas.get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker").build_full_result()["Quotas"]
    quota = next(item for item in known if item["QuotaName"] == "ml.c5.xlarge for training job usage")
    quotas.request_service_quota_increase(ServiceCode="sagemaker", QuotaCode=quota["QuotaCode"], DesiredValue=1)
    found = quotas.get_service_quota(ServiceCode="sagemaker", QuotaCode=quota["QuotaCode"])["Quota"]
    assert (quota["Value"], found["Value"]) == (20, 1)
    request = aws.request("pass")
    request["ResourceConfig"] |= {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2}
    code, message = refusal(aws, request)
    assert code == "ResourceLimitExceeded"
    assert "'ml.c5.xlarge for training job usage' is 1 Instances" in message


def pool_job(aws: Aws, keep_alive: int, count: int = 1) -> str:
    request = aws.request("pass")
    shape = {"InstanceType": "ml.r5.large", "KeepAlivePeriodInSeconds": keep_alive, "InstanceCount": count}
    request["ResourceConfig"] |= shape
    aws.client("sagemaker").create_training_job(**request)
    return str(aws.wait(request["TrainingJobName"])["TrainingJobName"])


def pool(aws: Aws, name: str) -> dict[str, Any]:
    status: dict[str, Any] = aws.describe(name)["WarmPoolStatus"]
    return status


def test_a_warm_pool_is_reused_then_released(aws: Aws) -> None:
    first = pool_job(aws, 600)
    assert pool(aws, first) == {"Status": "Available"}
    with pytest.raises(ClientError, match="available warm pool"):
        aws.client("sagemaker").delete_training_job(TrainingJobName=first)
    second = pool_job(aws, 600)
    assert pool(aws, first)["Status"] == "Reused"
    assert pool(aws, first)["ReusedByJob"] == second
    aws.client("sagemaker").update_training_job(TrainingJobName=second, ResourceConfig={"KeepAlivePeriodInSeconds": 0})
    assert pool(aws, second)["Status"] == "Terminated"


def test_a_warm_pool_ends_by_itself(aws: Aws) -> None:
    name = pool_job(aws, 1)
    time.sleep(1.1)
    assert pool(aws, name) == {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 1}


def test_a_warm_pool_over_its_quota_is_not_kept(aws: Aws) -> None:
    assert pool(aws, pool_job(aws, 600, count=5))["Status"] == "Terminated"


def test_faults(aws: Aws) -> None:
    sagemaker = aws.client("sagemaker")
    failed = aws.run("pass", TrainingJobName="fault-failed-261121-101500-0")
    assert failed["FailureReason"].startswith("CapacityError: ")
    assert "Training" not in statuses(failed)

    request = aws.request("pass", TrainingJobName="fault-quota")
    assert refusal(aws, request) == ("ResourceLimitExceeded", "no more of those")
    sagemaker.create_training_job(**request)

    stopped = aws.run("pass", TrainingJobName="fault-stopped")
    assert (stopped["TrainingJobStatus"], stopped["SecondaryStatus"]) == ("Stopped", "MaxWaitTimeExceeded")


def test_throttling_counts_attempts(aws: Aws) -> None:
    once = aws.new_client("sagemaker", config=Config(retries={"total_max_attempts": 1}))
    request = aws.request("pass", TrainingJobName="fault-throttle")
    for _ in range(2):
        with pytest.raises(ClientError, match="ThrottlingException"):
            once.create_training_job(**request)
    once.create_training_job(**request)
    once.close()
