"""The policy evaluator: each rule on which the proofs about IAM rest, and moto's own enforcement where it has one."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from proofs.calls import of_a_container
from proofs.forbidden import to_a_container
from proofs.planned import Planned
from sagefit.iam.evaluate import Call, Context, allows
from sagefit.machine.graph import submits

pytestmark = pytest.mark.xdist_group("plans")

ARN = "arn:aws:sagemaker:us-east-1:123456789012:training-job"


def allow(**elements: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "sagemaker:CreateTrainingJob", "Resource": "*"} | elements


def answer(*statements: dict[str, Any], resource: str = "*", context: Context | None = None) -> bool:
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    return allows([policy], Call("sagemaker:CreateTrainingJob", resource, context or {}))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("sagemaker:CreateTrainingJob", True),
        ("SageMaker:createtrainingjob", True),
        ("sagemaker:Create*", True),
        ("sagemaker:CreateTraining???", True),
        ("sagemaker:Create", False),
        (["s3:GetObject", "*"], True),
        ([], False),
    ],
)
def test_actions(action: str | list[str], expected: bool) -> None:
    assert answer(allow(Action=action)) == expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [(f"{ARN}/a-*", True), (f"{ARN}/A-*", False), (f"{ARN}/a-?", True), (f"{ARN}/b-*", False), (ARN, False)],
)
def test_resources(resource: str, expected: bool) -> None:
    assert answer(allow(Resource=resource), resource=f"{ARN}/a-1") == expected


def test_not_action_and_not_resource() -> None:
    everything_else = allow(NotAction="s3:*")
    del everything_else["Action"]
    assert answer(everything_else)
    everything_else["NotAction"] = ["s3:*", "sagemaker:*"]
    assert not answer(everything_else)
    elsewhere = allow(NotResource=f"{ARN}/a-*")
    del elsewhere["Resource"]
    assert answer(elsewhere, resource=f"{ARN}/b-1")
    assert not answer(elsewhere, resource=f"{ARN}/a-1")


def test_deny_wins_and_silence_denies() -> None:
    assert not answer(allow(), allow(Effect="Deny"))
    assert answer(allow(), allow(Effect="Deny", Resource=f"{ARN}/b"), resource=f"{ARN}/a")
    assert not answer()


@pytest.mark.parametrize(
    ("operator", "wanted", "value", "expected"),
    [
        ("StringEquals", "a", "a", True),
        ("StringEquals", ["a", "b"], "b", True),
        ("StringEquals", "a*", "ab", False),
        ("StringEquals", "a", None, False),
        ("StringEqualsIfExists", "a", None, True),
        ("StringEqualsIfExists", "a", "b", False),
        ("StringNotEquals", ["a", "b"], "b", False),
        ("StringNotEquals", ["a", "b"], "c", True),
        ("StringNotEquals", "a", None, True),
        ("StringLike", "jobs/*", "jobs/x", True),
        ("StringLike", "jobs/*", "", False),
        ("ArnLike", "arn:aws:sagemaker:*:1:training-job/*", "arn:aws:sagemaker:eu-west-1:1:training-job/x", True),
        ("ArnLike", "arn:aws:*:1:training-job/*", "arn:aws:sagemaker:eu-west-1:1:training-job/x", False),
        ("NumericLessThanEquals", "3600", "3600", True),
        ("NumericLessThanEquals", "3600", "3601", False),
        ("NumericLessThanEquals", "600", "70", True),
        ("NumericLessThanEquals", "600", None, False),
        ("NumericLessThanEqualsIfExists", "600", None, True),
        ("NumericEquals", "0", "0", True),
        ("NumericEquals", "0", "1", False),
        ("Bool", "true", "true", True),
        ("Bool", "true", None, False),
        ("BoolIfExists", "false", None, True),
        ("BoolIfExists", "false", "true", False),
        ("Null", "false", "a", True),
        ("Null", "false", None, False),
        ("Null", "true", None, True),
        ("ForAllValues:StringEquals", ["a", "b"], ["a", "b"], True),
        ("ForAllValues:StringEquals", ["a", "b"], ["a", "c"], False),
        ("ForAllValues:StringEquals", ["a", "b"], None, True),
        ("ForAnyValue:StringEquals", ["a", "b"], ["a", "c"], True),
        ("ForAnyValue:StringEquals", ["a", "b"], None, False),
    ],
)
def test_conditions(operator: str, wanted: str | list[str], value: str | list[str] | None, expected: bool) -> None:
    context: Context = {} if value is None else {"Key": value}
    assert answer(allow(Condition={operator: {"key": wanted}}), context=context) == expected


def test_all_conditions_must_hold() -> None:
    both = allow(Condition={"StringEquals": {"a": "1", "b": "2"}, "Bool": {"c": "true"}})
    assert answer(both, context={"a": "1", "b": "2", "c": "true"})
    assert not answer(both, context={"a": "1", "b": "2", "c": "false"})
    assert not answer(both, context={"a": "1", "b": "1", "c": "true"})


def test_what_is_not_known_is_an_error() -> None:
    with pytest.raises(KeyError):
        answer(allow(Condition={"DateLessThan": {"a": "2030-01-01"}}), context={"a": "2029-01-01"})
    with pytest.raises(ValueError, match="policy variables"):
        answer(allow(Resource="arn:aws:s3:::${aws:username}"))
    with pytest.raises(TypeError, match="no quantifier"):
        answer(allow(Condition={"StringEquals": {"a": "1"}}), context={"a": ["1", "2"]})


def test_moto_enforces_the_same_on_objects(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """The container's role, assumed: each call on objects is answered by moto as the evaluator says."""
    document = planned.document("minimal")
    policies = planned.role_policies()["minimal.module.platform.module.role"]
    request = submits(planned.definitions()["quickstart"])[0]
    listed = [*of_a_container(request, document, "quickstart"), *to_a_container(document)]
    on_objects = [call for call in listed if call.action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")]
    with mock_aws():
        client, close = _as_role(policies, document)
        monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)
        try:
            answers = {str(call): _is_allowed(client, call) for call in on_objects}
        finally:
            close()
    assert answers == {str(call): allows(policies, call) for call in on_objects}
    assert set(answers.values()) == {True, False}


def _as_role(policies: list[dict[str, Any]], document: dict[str, Any]) -> tuple[Any, Any]:
    """An S3 client with the permissions of the policies, and the buckets to use them on."""
    make: Any = boto3.client
    iam, admin, sts = make("iam"), make("s3", region_name="us-east-1"), make("sts", region_name="us-east-1")
    trust = {"Version": "2012-10-17", "Statement": []}
    role = iam.create_role(RoleName="container", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    for index, policy in enumerate(policies):
        iam.put_role_policy(RoleName="container", PolicyName=str(index), PolicyDocument=json.dumps(policy))
    for bucket in [*document["buckets"].values(), "another-bucket"]:
        admin.create_bucket(Bucket=bucket)
    keys = sts.assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    client = make(
        "s3",
        region_name="us-east-1",
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )

    def close() -> None:
        for opened in (iam, admin, sts, client):
            opened.close()

    return client, close


def _is_allowed(client: Any, call: Call) -> bool:
    """Whether the call is let through; that there is no such object is told afterwards."""
    bucket, _, key = call.resource.removeprefix("arn:aws:s3:::").partition("/")
    method = {"GetObject": client.get_object, "PutObject": client.put_object, "DeleteObject": client.delete_object}
    try:
        method[call.action.removeprefix("s3:")](Bucket=bucket, Key=key)
    except ClientError as error:
        return error.response["Error"]["Code"] != "AccessDenied"
    return True
