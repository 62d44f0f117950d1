"""Which cloud, account and region a command talks to."""

from __future__ import annotations

import os
from pathlib import Path

import boto3
import pytest

from sagefit.target import activate


@pytest.mark.parametrize(
    ("given", "region"),
    [
        ({"AWS_REGION": "eu-west-3"}, "eu-west-3"),
        ({"AWS_REGION": "eu-west-3", "AWS_DEFAULT_REGION": "us-east-1"}, "eu-west-3"),
        ({"AWS_DEFAULT_REGION": "us-east-1"}, "us-east-1"),
        ({}, "ap-south-1"),
    ],
    ids=["the one", "both", "the other", "the profile"],
)
def test_boto3_works_in_the_region_of_terraform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], region: str
) -> None:
    """Terraform's order: https://registry.terraform.io/providers/hashicorp/aws/latest/docs#environment-variables."""
    (tmp_path / "config").write_text("[default]\nregion = ap-south-1\n", encoding="utf-8")
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path))
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "SAGEFIT_ROLE_ARN"):
        os.environ.pop(name, None)
    os.environ.update(given, AWS_CONFIG_FILE=str(tmp_path / "config"))
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    activate("aws")
    assert boto3.client("ssm").meta.region_name == region
