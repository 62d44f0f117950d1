"""Two jobs of one platform that try to reach each other: each has a role of its own, and the cloud enforces it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_runner import Sagefit
from cloud.aws_user import Aws
from job_files import write_job
from security.conftest import note

pytestmark = pytest.mark.xdist_group("security-platform")

BUCKET = "sagefit-dev-123456789012-us-east-1-{}"
JOBS = ("ledger", "ledger-2")  # one name begins like the other
# Without a client of AWS: the container's image has none, and signatures are not checked here.
SCRIPT = """
import json, os, sys, urllib.error, urllib.request

other, mine, data, artifacts, checkpoints = sys.argv[-5:]  # hyperparameters stand before them
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

def ask(method, path, service="s3", body="", **headers):
    key = os.environ["AWS_ACCESS_KEY_ID"]
    scope = f"{key}/20260101/us-east-1/{service}/aws4_request"
    signature = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
    headers = {"Authorization": signature, **{name.replace("_", "-"): value for name, value in headers.items()}}
    url = os.environ["AWS_ENDPOINT_URL"] + path
    request = urllib.request.Request(url, body.encode() or None, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code

def json_call(service, target):
    return ask("POST", "/", service, "{}", X_Amz_Target=target, Content_Type="application/x-amz-json-1.1")

gone = f"<Delete><Object><Key>jobs/{other}/state</Key></Object></Delete>"
role = f"Action=PutRolePolicy&Version=2010-05-08&RoleName=sagefit-dev-{mine}-execution&PolicyName=x&PolicyDocument=x"
theirs = f"{checkpoints}/jobs/{other}/state"
told = {
    "its own: list checkpoints": ask("GET", f"/{checkpoints}?list-type=2&prefix=jobs/{mine}/"),
    "its own: write a checkpoint": ask("PUT", f"/{checkpoints}/jobs/{mine}/mine", body="mine"),
    "its own: read a checkpoint": ask("GET", f"/{checkpoints}/jobs/{mine}/mine"),
    "its own: delete a checkpoint": ask("DELETE", f"/{checkpoints}/jobs/{mine}/mine"),
    "read another job's checkpoint": ask("GET", f"/{checkpoints}/jobs/{other}/state"),
    "replace another job's checkpoint": ask("PUT", f"/{checkpoints}/jobs/{other}/state", body="poison"),
    "replace it in parts": ask("POST", f"/{checkpoints}/jobs/{other}/state?uploads"),
    "delete another job's checkpoint": ask("DELETE", f"/{checkpoints}/jobs/{other}/state"),
    "delete it among many": ask("POST", f"/{checkpoints}?delete", body=gone),
    "copy it below the own name": ask("PUT", f"/{checkpoints}/jobs/{mine}/copy", X_Amz_Copy_Source=theirs),
    "list another job's checkpoints": ask("GET", f"/{checkpoints}?list-type=2&prefix=jobs/{other}/"),
    "list all checkpoints": ask("GET", f"/{checkpoints}?list-type=2"),
    "read another job's model": ask("GET", f"/{artifacts}/jobs/{other}/state"),
    "replace another job's model": ask("PUT", f"/{artifacts}/jobs/{other}/state", body="poison"),
    "read another job's code": ask("GET", f"/{data}/jobs/{other}/state"),
    "replace another job's code": ask("PUT", f"/{data}/jobs/{other}/state", body="poison"),
    "replace the own code": ask("PUT", f"/{data}/jobs/{mine}/state", body="poison"),
    "read data that it does not name": ask("GET", f"/{data}/datasets/state"),
    "widen the own role": ask("POST", "/", "iam", role, **FORM),
    "start a training job": json_call("sagemaker", "SageMaker.CreateTrainingJob"),
    "start a run": json_call("states", "AWSStepFunctions.StartExecution"),
    "read a parameter": json_call("ssm", "AmazonSSM.GetParameter"),
}
with open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], "told.json"), "w") as file:
    json.dump(told, file)
"""
PLACES = [
    *((BUCKET.format(kind), f"jobs/{job}/state") for kind in ("checkpoints", "artifacts", "data") for job in JOBS),
    (BUCKET.format("data"), "datasets/state"),
]


@pytest.fixture(scope="module")
def told(sagefit: Sagefit, aws: Aws, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """What each of two jobs, run at once, was answered to all that it tried."""
    s3 = aws.client("s3")
    files = {job: _write(tmp_path_factory.mktemp(job), job, other) for job, other in zip(JOBS, JOBS[::-1], strict=True)}
    for job in JOBS:
        sagefit("plan", files[job])
        sagefit("apply", files[job])
    for bucket, key in PLACES:
        s3.put_object(Bucket=bucket, Key=key, Body=b"as it was")
    for run in [sagefit("start", files[job]).out.split()[0] for job in JOBS]:
        sagefit("watch", run)
    return {job: _told(aws, job) for job in JOBS}


def _write(folder: Path, job: str, other: str) -> Path:
    buckets = [BUCKET.format(kind) for kind in ("data", "artifacts", "checkpoints")]
    attempts = [{"name": "only", "instance_type": "ml.m5.large"}]
    resources = {"max_runtime": "5m", "poll_interval": "1s", "output_compression": "NONE"}
    file = write_job(
        folder,
        {"name": job, "attempts": attempts, "resources": resources, "code.arguments": [other, job, *buckets]},
        file=f"{job}.yaml",
    )
    (folder / "src/train.py").write_text(SCRIPT, encoding="utf-8")
    return file


def _told(aws: Aws, job: str) -> dict[str, int]:
    s3, bucket = aws.client("s3"), BUCKET.format("artifacts")
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix=f"jobs/{job}/")["Contents"]]
    (key,) = [key for key in keys if key.endswith("/told.json")]
    found: dict[str, int] = json.load(s3.get_object(Bucket=bucket, Key=key)["Body"])
    return found


@pytest.mark.parametrize("job", JOBS)
def test_a_job_works_with_what_is_its_own(told: dict[str, dict[str, int]], job: str) -> None:
    own = {what: status for what, status in told[job].items() if what.startswith("its own")}
    assert len(own) == 4
    assert set(own.values()) <= {200, 204}, own


@pytest.mark.parametrize("job", JOBS)
def test_a_job_reaches_nothing_of_another(
    told: dict[str, dict[str, int]], job: str, aws: Aws, request: pytest.FixtureRequest
) -> None:
    tried = {what: status for what, status in told[job].items() if not what.startswith("its own")}
    assert len(tried) == 18
    assert set(tried.values()) == {403}, tried
    kept = {aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read() for bucket, key in PLACES}
    assert kept == {b"as it was"}
    if job == JOBS[0]:
        for what in tried:
            note(request, f"job: {what}", "granted", "403 AccessDenied")
