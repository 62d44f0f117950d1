"""What stands in the way of destroying a platform is named before anything is gone, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest

from cloud.aws_user import ROLE, Aws
from sagefit import removal
from sagefit.errors import REFUSED, SagefitError


@pytest.fixture(autouse=True)
def _here(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    _as(aws.environment, monkeypatch)


def _as(environment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def going(kind: str, *actions: str, **before: Any) -> dict[str, Any]:
    return {"type": kind, "change": {"actions": list(actions or ("delete",)), "before": before}}


def planned(*changes: dict[str, Any]) -> dict[str, Any]:
    return {"resource_changes": list(changes)}


def machine(aws: Aws, name: str, **tags: str) -> str:
    made = aws.client("stepfunctions").create_state_machine(
        name=name,
        definition=json.dumps({"StartAt": "a", "States": {"a": {"Type": "Succeed"}}}),
        roleArn=ROLE,
        tags=[{"key": f"sagefit:{key}", "value": value} for key, value in tags.items()],
    )
    return str(made["stateMachineArn"])


def test_all_that_is_in_the_way_is_one_refusal(aws: Aws) -> None:
    s3, ecr = aws.client("s3"), aws.client("ecr")
    s3.create_bucket(Bucket="rm-full")
    s3.put_bucket_versioning(Bucket="rm-full", VersioningConfiguration={"Status": "Enabled"})
    for body in (b"1", b"2"):
        s3.put_object(Bucket="rm-full", Key="model", Body=body)
    s3.delete_object(Bucket="rm-full", Key="model")  # gone for whoever lists objects, and in the way all the same
    ecr.create_repository(repositoryName="rm-full")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}
    ecr.put_image(repositoryName="rm-full", imageManifest=json.dumps(manifest), imageTag="one")
    machine(aws, "sagefit-rm-cats", platform="rm", job="cats")
    changes = [going("aws_s3_bucket", bucket="rm-full", force_destroy=False)]
    changes += [going("aws_ecr_repository", name="rm-full", force_delete=None), going("aws_sns_topic", name="rm")]
    told: list[str] = []
    with pytest.raises(SagefitError) as refused:
        removal.refuse(planned(*changes), "rm", told.append)
    assert refused.value.exit_code == REFUSED
    assert refused.value.message.splitlines() == [
        "platform rm: nothing was destroyed, because Terraform would stop half-way:",
        "- job cats is applied on it, and cannot be destroyed without it",
        "- bucket rm-full holds 3 versions of objects",
        "- repository rm-full holds 1 image",
    ]
    hint = str(refused.value.hint)
    assert [each in hint for each in ("destroy JOB", "force_destroy = true", "force_delete = true")] == [True] * 3
    assert told == []


def test_what_goes_with_the_platform_or_is_not_its_own_is_in_nobodys_way(aws: Aws) -> None:
    s3 = aws.client("s3")
    for bucket in ("rm-empty", "rm-forced", "rm-stays"):
        s3.create_bucket(Bucket=bucket)
    for bucket in ("rm-forced", "rm-stays"):
        s3.put_object(Bucket=bucket, Key="model", Body=b"1")
    own = machine(aws, "sagefit-rm2-run-cleanup", platform="rm2", job="looks like one")
    machine(aws, "sagefit-rm2-x-cats", platform="rm2-x", job="cats")  # "x-cats" of this platform has the same name
    machine(aws, "sagefit-rm2-by-hand")
    plan = planned(
        going("aws_s3_bucket", bucket="rm-empty", force_destroy=False),
        going("aws_s3_bucket", bucket="rm-forced", force_destroy=True),
        going("aws_s3_bucket", "no-op", bucket="rm-stays", force_destroy=False),
        going("aws_s3_bucket", bucket="rm-was-never-there", force_destroy=False),
        going("aws_ecr_repository", name="rm-was-never-there", force_delete=False),
        going("aws_sfn_state_machine", arn=own),
    )
    assert list(removal.obstacles(plan, "rm2")) == []


def test_a_full_answer_says_that_there_is_more(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_OBJECTS", 2)
    aws.client("s3").create_bucket(Bucket="rm-many")
    for key in "abc":
        aws.client("s3").put_object(Bucket="rm-many", Key=key, Body=b"1")
    (found,) = removal.obstacles(planned(going("aws_s3_bucket", bucket="rm-many")), "rm3")
    assert found.what == "bucket rm-many holds 2 or more versions of objects"


def test_what_may_not_be_looked_at_is_said_and_refuses_nothing(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    aws.client("s3").create_bucket(Bucket="rm-hidden")
    aws.client("s3").put_object(Bucket="rm-hidden", Key="model", Body=b"1")
    iam = aws.client("iam")
    iam.create_user(UserName="rm-stranger")
    key = iam.create_access_key(UserName="rm-stranger")["AccessKey"]
    own = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    _as(own, monkeypatch)
    told: list[str] = []
    removal.refuse(planned(going("aws_s3_bucket", bucket="rm-hidden")), "rm4", told.append)
    assert [line.split(":")[0] for line in told] == ["jobs of platform rm4", "bucket rm-hidden"]
    assert all("AccessDenied" in line for line in told)
