"""An embedded cloud that looks like an account in AWS, with a platform's document and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from policies.offline import cloud, publish

ACCOUNT, REGION = "123456789012", "us-east-1"


class Account:
    """The account as its owner sees it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def client(self, service: str) -> Any:
        """A client of the owner."""
        make: Any = boto3.client
        return make(
            service,
            region_name=REGION,
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
        )

    def publish(self, name: str, **more: Any) -> None:
        """Make a platform known."""
        document = {
            "schema": 1,
            "name": name,
            "partition": "aws",
            "region": REGION,
            "account_id": ACCOUNT,
            "role_arn": f"arn:aws:iam::{ACCOUNT}:role/sagefit-{name}-execution",
            "buckets": {kind: f"sagefit-{name}-{kind}" for kind in ("data", "artifacts", "checkpoints")},
            **more,
        }
        publish(document, self.environment)

    def user(self, name: str, *statements: dict[str, Any]) -> dict[str, str]:
        """The environment of a new user with these statements as policy."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        policy = {"Version": "2012-10-17", "Statement": list(statements)}
        iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        own = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        return {key: value for key, value in self.environment.items() if key != "AWS_SESSION_TOKEN"} | own


@pytest.fixture(scope="package")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """One for all tests of this room."""
    with cloud(tmp_path_factory.mktemp("cloud")) as environment:
        yield Account(environment)
