"""The bucket for states on the embedded cloud is made by whoever may, and reached by whoever may not make one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sagefit.acceptance import ground
from sagefit.terraform.backend import EMBEDDED_BUCKET, embedded_bucket

DENIED = ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadBucket")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of all calls to S3."""
    made: list[str] = []
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with mock_aws():
        boto3.setup_default_session()
        session: Any = boto3.DEFAULT_SESSION
        session.events.register("before-call.s3", lambda model, **_: made.append(model.name))
        yield made


def test_it_is_made_once(calls: list[str]) -> None:
    assert embedded_bucket() == embedded_bucket() == EMBEDDED_BUCKET
    assert calls == ["HeadBucket", "CreateBucket", "HeadBucket"]


def test_a_role_that_may_not_look_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Denied:
        def head_bucket(self, **_: str) -> None:
            raise DENIED

    monkeypatch.setattr(boto3, "client", lambda _: Denied())
    assert embedded_bucket() == EMBEDDED_BUCKET  # Terraform then says what it may not


@pytest.mark.parametrize("is_local", [True, False], ids=["embedded cloud", "AWS"])
def test_the_role_of_the_suites_pipeline_reaches_it(
    calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    monkeypatch.setattr(ground, "ROOT", tmp_path)
    assert ground._state_bucket(is_local=is_local) == {}
    override = 'terraform {\n  backend "s3" {\n    # bucket = "old"\n    bucket = "ours"\n  }\n}\n'
    (tmp_path / "backend_override.tf").write_text(override, encoding="utf-8")
    found = ground._state_bucket(is_local=is_local)
    assert found == {"state_bucket": EMBEDDED_BUCKET if is_local else "ours"}
    assert ("CreateBucket" in calls) is is_local
