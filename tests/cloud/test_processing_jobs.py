"""Processing jobs that really run: data in, a command in an image's environment, data and logs out."""

from __future__ import annotations

import itertools
import json
import time
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.aws_user import ENDED, IMAGE, ROLE, Aws

LOG_GROUP = "/aws/sagemaker/ProcessingJobs"
INPUT, OUTPUT = "/opt/ml/processing/input", "/opt/ml/processing/output"
_names = itertools.count()

COUNT = """
import json, os, pathlib, sys
given, left = map(pathlib.Path, sys.argv[1:3])
(left / "part").mkdir()
(left / "part" / "sizes.json").write_text(json.dumps({p.name: p.stat().st_size for p in given.iterdir()}))
config = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"]) / "config"
(left / "hosts.json").write_text((config / "resourceconfig.json").read_text())
(left / "job.json").write_text((config / "processingjobconfig.json").read_text())
(config.parent / "output").mkdir(exist_ok=True)
(config.parent / "output" / "message").write_text("3 files")
print("level", os.environ["LEVEL"], os.environ["PROCESSING_JOB_NAME"])
"""


def request(aws: Aws, script: str, **changes: Any) -> dict[str, Any]:
    """A request for a processing job that runs a script with the folders of its input and its output."""
    name = changes.pop("name", f"processing-{next(_names)}")
    aws.put(f"code/{name}/work.py", script)
    s3 = {"S3DataType": "S3Prefix", "S3InputMode": "File"}
    return {
        "ProcessingJobName": name,
        "RoleArn": ROLE,
        "AppSpecification": {
            "ImageUri": IMAGE,
            "ContainerEntrypoint": ["python3", f"{INPUT}/code/work.py"],
            "ContainerArguments": [f"{INPUT}/raw", f"{OUTPUT}/rows"],
        },
        "ProcessingInputs": [
            {
                "InputName": "code",
                "S3Input": {**s3, "S3Uri": f"s3://bucket-data/code/{name}/", "LocalPath": f"{INPUT}/code"},
            },
            {
                "InputName": "raw",
                "S3Input": {**s3, "S3Uri": "s3://bucket-data/processing/raw/", "LocalPath": f"{INPUT}/raw"},
            },
        ],
        "ProcessingOutputConfig": {"Outputs": [output("rows", name)]},
        "ProcessingResources": {
            "ClusterConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10}
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 300},
        "Environment": {"LEVEL": "7"},
    } | changes


def output(name: str, job: str, mode: str = "EndOfJob") -> dict[str, Any]:
    return {
        "OutputName": name,
        "S3Output": {
            "S3Uri": f"s3://bucket-artifacts/{job}/{name}",
            "LocalPath": f"{OUTPUT}/{name}",
            "S3UploadMode": mode,
        },
    }


def describe(aws: Aws, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = aws.client("sagemaker").describe_processing_job(ProcessingJobName=name)
    return answer


def wait(aws: Aws, name: str, seconds: float = 60) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while (job := describe(aws, name))["ProcessingJobStatus"] not in ENDED:
        assert time.monotonic() < deadline, f"{name} goes on after {seconds} s"
        time.sleep(0.05)
    return job


def run(aws: Aws, script: str, **changes: Any) -> dict[str, Any]:
    made = request(aws, script, **changes)
    aws.client("sagemaker").create_processing_job(**made)
    return wait(aws, made["ProcessingJobName"])


def lines(aws: Aws, name: str) -> list[str]:
    logs = aws.client("logs")
    streams = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{name}/")["logStreams"]
    return [
        event["message"]
        for stream in streams
        for event in logs.get_log_events(logGroupName=LOG_GROUP, logStreamName=stream["logStreamName"])["events"]
    ]


@pytest.fixture(scope="module")
def raw(aws: Aws) -> None:
    for size in (1, 2, 3):
        aws.put(f"processing/raw/{size}.bin", b"x" * size)


@pytest.mark.usefixtures("raw")
def test_a_step_turns_inputs_into_outputs(aws: Aws) -> None:
    made = request(aws, COUNT, Tags=[{"Key": "team", "Value": "vision"}])
    answer = aws.client("sagemaker").create_processing_job(**made)
    job = wait(aws, made["ProcessingJobName"])

    assert job["ProcessingJobStatus"] == "Completed", job.get("FailureReason")
    assert job["ExitMessage"] == "3 files"
    assert {key: job[key] for key in made if key != "Tags"} == {k: v for k, v in made.items() if k != "Tags"}
    assert job["CreationTime"] <= job["ProcessingStartTime"] <= job["ProcessingEndTime"]
    name = made["ProcessingJobName"]
    assert sorted(aws.keys("bucket-artifacts", f"{name}/")) == [
        f"{name}/rows/hosts.json",
        f"{name}/rows/job.json",
        f"{name}/rows/part/sizes.json",
    ]
    left = f"s3://bucket-artifacts/{name}/rows"
    assert json.loads(aws.get(f"{left}/part/sizes.json")) == {"1.bin": 1, "2.bin": 2, "3.bin": 3}
    assert json.loads(aws.get(f"{left}/hosts.json"))["hosts"] == ["algo-1"]
    assert json.loads(aws.get(f"{left}/job.json"))["ProcessingJobArn"] == answer["ProcessingJobArn"]
    assert lines(aws, name) == [f"level 7 {name}"]
    assert aws.client("sagemaker").list_tags(ResourceArn=answer["ProcessingJobArn"])["Tags"] == made["Tags"]


@pytest.mark.usefixtures("raw")
def test_hosts_share_what_is_sharded(aws: Aws) -> None:
    made = request(aws, COUNT.replace('"sizes.json"', 'f"{os.getpid()}.json"'))
    made["ProcessingInputs"][1]["S3Input"]["S3DataDistributionType"] = "ShardedByS3Key"
    made["ProcessingResources"]["ClusterConfig"]["InstanceCount"] = 2
    aws.client("sagemaker").create_processing_job(**made)
    name = made["ProcessingJobName"]
    assert wait(aws, name)["ProcessingJobStatus"] == "Completed"
    parts = aws.keys("bucket-artifacts", f"{name}/rows/part/")
    found = [sorted(json.loads(aws.get(f"s3://bucket-artifacts/{key}"))) for key in parts]
    assert sorted(found) == [["1.bin", "3.bin"], ["2.bin"]]


@pytest.mark.usefixtures("raw")
def test_a_failure_tells_exit_code_and_last_words_and_leaves_no_output(aws: Aws) -> None:
    job = run(aws, COUNT + "\nsys.exit(3)")
    assert job["ProcessingJobStatus"] == "Failed"
    assert job["FailureReason"] == "AlgorithmError: , exit code: 3"
    assert job["ExitMessage"] == "3 files"
    assert aws.keys("bucket-artifacts", f"{job['ProcessingJobName']}/") == []


@pytest.mark.usefixtures("raw")
def test_a_host_without_memory_is_told_in_the_service_s_words(aws: Aws) -> None:
    job = run(aws, "import time\nheld = bytearray(2_000_000_000)\ntime.sleep(60)")
    assert job["ProcessingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("ClientError: Please use an instance type with more memory")


@pytest.mark.usefixtures("raw")
def test_what_is_continuous_arrives_whatever_happens(aws: Aws) -> None:
    made = request(aws, COUNT + "\nsys.exit(1)")
    name = made["ProcessingJobName"]
    made["ProcessingOutputConfig"] = {"Outputs": [output("rows", name, "Continuous")]}
    aws.client("sagemaker").create_processing_job(**made)
    assert wait(aws, name)["ProcessingJobStatus"] == "Failed"
    assert f"{name}/rows/part/sizes.json" in aws.keys("bucket-artifacts", f"{name}/")


@pytest.mark.usefixtures("raw")
@pytest.mark.parametrize("limit", [300, 1], ids=["by-a-person", "by-its-limit"])
def test_a_stopped_step_is_stopped(aws: Aws, limit: int) -> None:
    made = request(aws, "import time\ntime.sleep(60)", StoppingCondition={"MaxRuntimeInSeconds": limit})
    sagemaker, name = aws.client("sagemaker"), made["ProcessingJobName"]
    sagemaker.create_processing_job(**made)
    if limit > 1:
        sagemaker.stop_processing_job(ProcessingJobName=name)
        assert describe(aws, name)["ProcessingJobStatus"] in ("Stopping", "Stopped")
    assert wait(aws, name)["ProcessingJobStatus"] == "Stopped"


@pytest.mark.usefixtures("raw")
def test_jobs_are_listed_by_name_and_status(aws: Aws) -> None:
    """A page is filtered after it was taken, so it can be empty and not be the last one."""
    sagemaker = aws.client("sagemaker")
    for number in range(2):
        run(aws, COUNT if number else "raise SystemExit(1)", name=f"listed-{number}")
    since = describe(aws, "listed-0")["CreationTime"] - timedelta(milliseconds=1)
    asked = {"CreationTimeAfter": since, "SortBy": "Name", "SortOrder": "Ascending", "MaxResults": 1}
    listed = sagemaker.list_processing_jobs(NameContains="listed-1", **asked)
    assert listed["ProcessingJobSummaries"] == []
    rest = sagemaker.list_processing_jobs(NameContains="listed-1", NextToken=listed["NextToken"], **asked)
    assert [job["ProcessingJobName"] for job in rest["ProcessingJobSummaries"]] == ["listed-1"]
    assert "NextToken" not in rest
    failed = sagemaker.list_processing_jobs(StatusEquals="Failed", **asked)["ProcessingJobSummaries"]
    assert [(job["ProcessingJobName"], job["FailureReason"]) for job in failed] == [
        ("listed-0", "AlgorithmError: , exit code: 1")
    ]


def cluster(**changes: Any) -> dict[str, Any]:
    own = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10} | changes
    return {"ProcessingResources": {"ClusterConfig": {key: value for key, value in own.items() if value is not None}}}


TWICE = [{"InputName": "a", "S3Input": {"S3Uri": "s3://b/c", "S3DataType": "S3Prefix", "LocalPath": f"{INPUT}/a"}}] * 2
ELSEWHERE = [{"InputName": "a", "S3Input": {"S3Uri": "s3://b/c", "S3DataType": "S3Prefix", "LocalPath": "/tmp/a"}}]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "n" * 64}, "length less than or equal to 63"),
        (cluster(InstanceCount=101), "value less than or equal to 100"),
        (cluster(VolumeSizeInGB=16385), "value less than or equal to 16384"),
        (cluster(InstanceType="ml.p5.48xlarge"), "enum value set"),
        (cluster(InstanceCount=None), "InstanceType and InstanceCount are required"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 777601}}, "value less than or equal to 777600"),
        ({"ProcessingInputs": TWICE}, "Input names of a processing job must be unique"),
        ({"ProcessingInputs": ELSEWHERE}, "must begin with /opt/ml/processing/"),
        ({"Environment": {"A": "x" * 257}}, "length less than or equal to 256"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/nobody"}, "Could not assume role"),
    ],
)
def test_bad_requests_are_refused(aws: Aws, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ClientError, match="ValidationException") as refused:
        aws.client("sagemaker").create_processing_job(**request(aws, "", **changes))
    assert says in str(refused.value)


def test_names_are_unique_and_what_is_not_there_is_said(aws: Aws) -> None:
    made = request(aws, "print()", name="fault-failed-twice")
    aws.client("sagemaker").create_processing_job(**made)
    with pytest.raises(ClientError, match="ResourceInUse"):
        aws.client("sagemaker").create_processing_job(**made)
    assert wait(aws, "fault-failed-twice")["FailureReason"].startswith("CapacityError")
    with pytest.raises(ClientError, match="ResourceNotFound"):
        describe(aws, "nothing-of-that-name")


def test_an_image_without_a_stand_in_fails_and_says_so(aws: Aws) -> None:
    application = {"ImageUri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1", "ContainerEntrypoint": ["python3"]}
    job = run(aws, "", AppSpecification=application)
    assert "stands in for these repositories only" in job["FailureReason"]
    job = run(aws, "", AppSpecification={"ImageUri": IMAGE})
    assert "ContainerEntrypoint only" in job["FailureReason"]
