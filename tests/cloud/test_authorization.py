"""The role of a state machine: inline and managed policies and the boundary are judged together, in moto's own IAM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sagefit.iam.evaluate import Call
from sagefit_cloud import authorization

ROLE = "arn:aws:iam::123456789012:role/team/states"
JOB = "arn:aws:sagemaker:us-east-1:123456789012:training-job"


def document(*actions: str) -> str:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": f"{JOB}/own-*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An IAM of this process alone, with a role without policies whose boundary allows two calls."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client: Any = boto3.client("iam", region_name="us-east-1")
        allowed = document("sagemaker:DescribeTrainingJob", "sagemaker:StopTrainingJob")
        boundary = client.create_policy(PolicyName="boundary", PolicyDocument=allowed)["Policy"]["Arn"]
        client.create_role(
            RoleName="states", Path="/team/", AssumeRolePolicyDocument="{}", PermissionsBoundary=boundary
        )
        yield client


def answer(action: str, job: str = "own-1", role: str = ROLE) -> str:
    """The error of a call with a role; empty when it may pass."""
    try:
        authorization.guard(role, "us-east-1")({"TrainingJobName": job}, SimpleNamespace(name=action))
    except ClientError as error:
        return str(error)
    return ""


def test_a_role_without_policies_may_do_nothing(iam: Any) -> None:  # noqa: ARG001
    assert answer("DescribeTrainingJob") == (
        "An error occurred (AccessDeniedException) when calling the DescribeTrainingJob operation: User: "
        "arn:aws:sts::123456789012:assumed-role/states/sagefit is not authorized to perform: "
        f"sagemaker:DescribeTrainingJob on resource: {JOB}/own-1 because no identity-based policy allows the "
        "sagemaker:DescribeTrainingJob action"
    )


@pytest.mark.parametrize("managed", [False, True])
def test_policies_and_boundary_must_both_allow(iam: Any, managed: bool) -> None:
    policy = document("sagemaker:DescribeTrainingJob", "sagemaker:UpdateTrainingJob")
    if managed:
        arn = iam.create_policy(PolicyName="managed", PolicyDocument=policy)["Policy"]["Arn"]
        iam.attach_role_policy(RoleName="states", PolicyArn=arn)
    else:
        iam.put_role_policy(RoleName="states", PolicyName="inline", PolicyDocument=policy)
    assert answer("DescribeTrainingJob") == ""
    assert "is not authorized" in answer("DescribeTrainingJob", job="another-1")
    assert "is not authorized" in answer("UpdateTrainingJob")  # not within the boundary
    assert "is not authorized" in answer("StopTrainingJob")  # within it, and not allowed


def test_a_role_that_nobody_knows_is_not_judged(iam: Any) -> None:  # noqa: ARG001
    assert answer("DescribeTrainingJob", role=ROLE.replace("states", "unknown")) == ""


def test_a_user_is_judged_where_nobody_has_called_sts(iam: Any) -> None:
    """moto makes the store of STS when it is first called; the key of a user is in IAM's."""
    iam.create_user(UserName="stranger")
    key = iam.create_access_key(UserName="stranger")["AccessKey"]["AccessKeyId"]
    denied = authorization.denial_of_key(key, [Call("s3:ListBucket", "arn:aws:s3:::b")])
    assert "user/stranger is not authorized to perform: s3:ListBucket" in denied
