"""STS hands out sessions with roles that are there and trust whoever asks, as on AWS."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.aws_user import Aws

ACCOUNT = "123456789012"
ROOT = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
MAY = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}
_names = itertools.count()


def document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def trusting(aws: Aws, *principals: object, **more: Any) -> str:
    """A role that trusts some principals."""
    trust = document(
        *({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": each, **more} for each in principals)
    )
    name = f"trusting-{next(_names)}"
    arn: str = aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    return arn


def user(aws: Aws, *may: Mapping[str, Any]) -> tuple[Aws, str]:
    """A user with a policy, and the user's ARN."""
    iam, name = aws.client("iam"), f"user-{next(_names)}"
    arn: str = iam.create_user(UserName=name)["User"]["Arn"]
    if may:
        iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=document(*may))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    own = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    return replace(aws, environment={**aws.environment, **own}, _clients={}), arn


def take(who: Aws, arn: str, **more: Any) -> str:
    """The ARN of the session that STS gives, or its error."""
    try:
        answer = who.client("sts").assume_role(RoleArn=arn, RoleSessionName="me", **more)
    except ClientError as error:
        return f"{error.response['ResponseMetadata']['HTTPStatusCode']} {error.response['Error']['Message']}"
    return str(answer["AssumedRoleUser"]["Arn"])


def denied(arn: str) -> str:
    return f"is not authorized to perform: sts:AssumeRole on resource: {arn}"


def test_a_role_that_is_not_there_is_given_to_nobody(aws: Aws) -> None:
    missing = f"arn:aws:iam::{ACCOUNT}:role/nobody-made-it"
    colleague, name = user(aws, MAY)
    assert denied(missing) in take(aws, missing)
    assert take(colleague, missing) == f"403 User: {name} {denied(missing)}"


@pytest.mark.parametrize(
    ("principal", "may", "taken"),
    [
        (ROOT, [MAY], True),
        ({"AWS": ACCOUNT}, [MAY], True),
        ("*", [], True),
        (ROOT, [], False),  # the account's trust asks the user's own policies too
        (ROOT, [MAY, {**MAY, "Effect": "Deny"}], False),
        ("*", [{**MAY, "Effect": "Deny"}], False),
        ({"AWS": "arn:aws:iam::999999999999:root"}, [MAY], False),
        ({"Service": "states.amazonaws.com"}, [MAY], False),
        ({"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/gitlab.com"}, [MAY], False),
    ],
)
def test_a_role_decides_who_takes_it(aws: Aws, principal: object, may: list[dict[str, str]], taken: bool) -> None:
    arn, (colleague, _) = trusting(aws, principal), user(aws, *may)
    answer = take(colleague, arn)
    assert (answer == f"arn:aws:sts::{ACCOUNT}:assumed-role/{arn.rpartition('/')[2]}/me") is taken
    assert (denied(arn) in answer) is not taken


def test_a_user_who_is_named_needs_no_policy(aws: Aws) -> None:
    colleague, name = user(aws)
    other, _ = user(aws)
    arn = trusting(aws, {"AWS": name})
    assert "assumed-role" in take(colleague, arn)
    assert denied(arn) in take(other, arn)


def test_conditions_of_the_trust_count(aws: Aws) -> None:
    arn = trusting(aws, ROOT, Condition={"StringEquals": {"sts:ExternalId": "agreed"}})
    colleague, _ = user(aws, MAY)
    assert denied(arn) in take(colleague, arn)
    assert denied(arn) in take(colleague, arn, ExternalId="guessed")
    assert "assumed-role" in take(colleague, arn, ExternalId="agreed")


def test_a_session_takes_another_role_as_its_own_role_may(aws: Aws) -> None:
    first = trusting(aws, ROOT)
    second, third = trusting(aws, {"AWS": first}), trusting(aws, {"Service": "states.amazonaws.com"})
    colleague, _ = user(aws, MAY)
    keys = colleague.client("sts").assume_role(RoleArn=first, RoleSessionName="me")["Credentials"]
    own = {"AWS_ACCESS_KEY_ID": keys["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"]}
    session = replace(aws, environment={**aws.environment, **own}, _clients={})
    assert "assumed-role" in take(session, second)
    assert f"assumed-role/{first.rpartition('/')[2]}/me {denied(third)}" in take(session, third)


def test_the_owner_stands_for_whoever_a_role_trusts(aws: Aws) -> None:
    """Such as a pipeline with its token, which the embedded cloud has no provider of."""
    pipeline = trusting(aws, {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/gitlab.com"})
    assert "assumed-role" in take(aws, pipeline)
