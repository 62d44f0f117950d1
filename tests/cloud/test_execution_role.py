"""The role of a training job is enforced: for its containers' calls, and where SageMaker moves its data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.aws_user import Aws

CHECKPOINTS = {"S3Uri": "s3://bucket-checkpoints/role/", "LocalPath": "/opt/ml/checkpoints"}
ALL = {
    "ecr:*": ["*"],
    "logs:*": ["*"],
    "cloudwatch:PutMetricData": ["*"],
    "s3:ListBucket": ["arn:aws:s3:::bucket-data", "arn:aws:s3:::bucket-checkpoints"],
    "s3:GetObject": ["arn:aws:s3:::bucket-data/*", "arn:aws:s3:::bucket-checkpoints/role/*"],
    "s3:PutObject": ["arn:aws:s3:::bucket-artifacts/jobs/*", "arn:aws:s3:::bucket-checkpoints/role/*"],
}
SCRIPT = """
import os, pathlib
folder = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"])
(folder / "checkpoints/state").write_text("1")
(folder / "model/model").write_text("1")
"""


def role(aws: Aws, name: str, allowed: dict[str, list[str]]) -> str:
    """A role that may do no more than this."""
    iam = aws.client("iam")
    trust = iam.get_role(RoleName="execution")["Role"]["AssumeRolePolicyDocument"]
    arn = iam.create_role(RoleName=name, Path="/some/", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    statements = [{"Effect": "Allow", "Action": action, "Resource": where} for action, where in allowed.items()]
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName=name, PolicyName="data", PolicyDocument=policy)
    return str(arn)


def ended(aws: Aws, name: str, **allowed: list[str]) -> dict[str, Any]:
    """A job with a role that may do ``ALL``, but for what is given otherwise."""
    changed = {action.replace("_", ":"): where for action, where in allowed.items()}
    found = {action: where for action, where in {**ALL, **changed}.items() if where}
    return aws.run(SCRIPT, RoleArn=role(aws, name, found), CheckpointConfig=CHECKPOINTS)


def test_a_role_with_just_what_a_job_needs(aws: Aws) -> None:
    assert ended(aws, "enough")["TrainingJobStatus"] == "Completed"
    assert aws.keys("bucket-checkpoints", "role/") == ["role/state"]


DENIED = "An error occurred (AccessDenied) when calling the GetObject operation: User: "
FAILS = {
    "code": ("s3_GetObject", "arn:aws:s3:::bucket-checkpoints/*", f"Data download failed:{DENIED}"),
    "checkpoints": ("s3_GetObject", "arn:aws:s3:::bucket-data/*", f"Data download failed:{DENIED}"),
    "to-write": ("s3_PutObject", "arn:aws:s3:::bucket-artifacts/jobs/*", "Artifact upload failed:"),
}


@pytest.mark.parametrize("lacks", FAILS)
def test_data_that_the_role_may_not_move_fails_the_job(aws: Aws, lacks: str) -> None:
    action, where, reason = FAILS[lacks]
    aws.put("role/state", "1", "bucket-checkpoints")
    job = ended(aws, f"lacks-{lacks}", **{action: [where]})
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith(f"ClientError: {reason}"), job["FailureReason"]
    call = action.replace("_", ":")
    said = (
        f"assumed-role/lacks-{lacks}/SageMaker is not authorized to perform: {call} on resource: arn:aws:s3:::bucket-"
    )
    assert said in job["FailureReason"]


@pytest.mark.parametrize(
    ("lacks", "told"),
    [("s3_PutObject", "Access denied to OutputDataConfig S3 bucket"), ("s3_ListBucket", "No S3 objects found")],
)
def test_a_job_whose_role_lacks_the_buckets_is_refused(aws: Aws, lacks: str, told: str) -> None:
    with pytest.raises(ClientError, match=told):
        ended(aws, f"lacks-{lacks[3:]}", **{lacks: []})


def test_a_role_that_may_not_pull_the_image_fails_the_job(aws: Aws) -> None:
    job = ended(aws, "lacks-image", **{"ecr:*": []})
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("ClientError: Cannot pull algorithm container.")


def test_what_a_role_may_not_tell_is_lost(aws: Aws) -> None:
    job = ended(aws, "lacks-logs", **{"logs:*": []})
    assert job["TrainingJobStatus"] == "Completed"
    found = aws.client("logs").describe_log_streams(
        logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=job["TrainingJobName"]
    )
    assert found["logStreams"] == []


@pytest.fixture(scope="module")
def encrypted(aws: Aws) -> str:
    """The ARN of a key that encrypts what is written to two buckets."""
    key = str(aws.client("kms").create_key()["KeyMetadata"]["Arn"])
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    for bucket in ("bucket-private", "bucket-hidden"):
        aws.client("s3").create_bucket(Bucket=bucket)
        aws.client("s3").put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    aws.put("x/1", "1", "bucket-hidden")
    return key


@pytest.mark.parametrize(
    ("allowed", "status", "told"),
    [
        (["kms:Decrypt", "kms:GenerateDataKey"], "Completed", ""),
        (["kms:GenerateDataKey"], "Failed", "is not authorized to perform: kms:Decrypt on resource: "),
        (["kms:Decrypt"], "Failed", "is not authorized to perform: kms:GenerateDataKey on resource: "),
    ],
    ids=["both", "cannot read", "cannot write"],
)
def test_a_role_uses_the_keys_of_its_buckets(
    aws: Aws, encrypted: str, allowed: list[str], status: str, told: str
) -> None:
    everywhere = {action: ["*"] for action in ("s3:ListBucket", "s3:GetObject", "s3:PutObject")}
    rights = {**ALL, **everywhere, **{action: [encrypted] for action in allowed}}
    name = f"keys-{len(allowed)}-{allowed[0].partition(':')[2].lower()}"
    hidden = {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket-hidden/x/"}
    request = aws.request(SCRIPT.replace('(folder / "checkpoints/state").write_text("1")\n', ""))
    request["RoleArn"] = role(aws, name, rights)
    request["OutputDataConfig"] = {"S3OutputPath": "s3://bucket-private/jobs"}
    request["InputDataConfig"].append({"ChannelName": "hidden", "DataSource": {"S3DataSource": hidden}})
    aws.client("sagemaker").create_training_job(**request)
    job = aws.wait(request["TrainingJobName"])
    assert job["TrainingJobStatus"] == status, job.get("FailureReason")
    assert told in job.get("FailureReason", "")
