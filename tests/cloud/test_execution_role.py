"""The role of a training job is enforced: for its containers' calls, and where SageMaker moves its data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud import test_processing_jobs as processing
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
UNDER = {
    "kms:CreateGrant": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
    "kms:GenerateDataKey": {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}},
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
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": action, "Resource": where} for action, where in allowed.items()
    ]
    for statement in statements:
        if statement["Action"] in UNDER:
            statement["Condition"] = UNDER[statement["Action"]]
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


KEY_RIGHTS = ("kms:CreateGrant", "kms:Decrypt", "kms:GenerateDataKey")
# Larger than what goes to S3 in one request: whoever sends parts has to read those before.
LARGE = """
import os, pathlib, sys
(pathlib.Path(FOLDER) / "large").write_bytes(os.urandom(9 << 20))
"""
TRAINED = LARGE.replace("FOLDER", 'os.environ["SAGEFIT_ML_ROOT"] + "/model"')
PROCESSED = LARGE.replace("FOLDER", "sys.argv[2]")
VOLUME = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10}


def trained(aws: Aws, role_arn: str, key: str) -> tuple[dict[str, Any], str]:
    """A training job that names a key for its volume and its output, and where its model is."""
    job = aws.run(
        TRAINED,
        RoleArn=role_arn,
        OutputDataConfig={"S3OutputPath": "s3://bucket-artifacts/jobs", "KmsKeyId": key},
        ResourceConfig={**VOLUME, "VolumeKmsKeyId": key},
    )
    return job, f"jobs/{job['TrainingJobName']}/output/model.tar.gz"


def processed(aws: Aws, role_arn: str, key: str, mode: str = "EndOfJob") -> tuple[dict[str, Any], str]:
    """The same of a processing job."""
    aws.put("processing/raw/1.bin", b"x")
    made = processing.request(aws, PROCESSED, RoleArn=role_arn)
    name = made["ProcessingJobName"]
    made["ProcessingOutputConfig"] = {"Outputs": [processing.output("rows", name, mode)], "KmsKeyId": key}
    made["ProcessingResources"] = {"ClusterConfig": {**VOLUME, "VolumeKmsKeyId": key}}
    aws.client("sagemaker").create_processing_job(**made)
    return processing.wait(aws, name), f"{name}/rows/large"


def followed(aws: Aws, role_arn: str, key: str) -> tuple[dict[str, Any], str]:
    """The same of a processing job whose output goes to S3 while it runs."""
    return processed(aws, role_arn, key, "Continuous")


@pytest.fixture(scope="module")
def named(aws: Aws) -> str:
    """The ARN of a key that no bucket has."""
    return str(aws.client("kms").create_key()["KeyMetadata"]["Arn"])


def with_key(aws: Aws, name: str, key: str, lacks: str = "") -> str:
    """A role that may use a key as jobs use it, but for one right."""
    everywhere = {action: ["*"] for action in ("s3:ListBucket", "s3:GetObject", "s3:PutObject")}
    rights = {action: [key] for action in KEY_RIGHTS if action != lacks}
    return role(aws, name, {**ALL, **everywhere, **rights})


@pytest.mark.parametrize("run", [trained, processed, followed])
def test_a_job_encrypts_with_the_key_that_it_names(aws: Aws, named: str, run: Any) -> None:
    job, made = run(aws, with_key(aws, f"named-{run.__name__}", named), named)
    assert job.get("FailureReason") is None
    found = aws.client("s3").head_object(Bucket="bucket-artifacts", Key=made)
    assert (found["ServerSideEncryption"], found["SSEKMSKeyId"]) == ("aws:kms", named)


@pytest.mark.parametrize(
    ("lacks", "reason"),
    [
        ("kms:CreateGrant", "VolumeKmsKeyId {key} cannot be used: User: "),
        ("kms:Decrypt", "Artifact upload failed:"),
        ("kms:GenerateDataKey", "Artifact upload failed:"),
    ],
)
@pytest.mark.parametrize("run", [trained, processed])
def test_a_role_that_may_not_use_the_key_fails_the_job(aws: Aws, named: str, run: Any, lacks: str, reason: str) -> None:
    role_arn = with_key(aws, f"named-{run.__name__}-{lacks[4:].lower()}", named, lacks)
    job, _ = run(aws, role_arn, named)
    said = job["FailureReason"]
    assert said.startswith(f"ClientError: {reason.format(key=named)}"), said
    assert f"/SageMaker is not authorized to perform: {lacks} on resource: {named}" in said
    began = job.get("TrainingStartTime") or job.get("ProcessingStartTime")
    assert (began is None) == (lacks == "kms:CreateGrant")
