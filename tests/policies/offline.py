"""Terraform with the real provider and no AWS: the embedded cloud answers what a plan asks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from sagefit.cloud import control
from sagefit.paths import home
from sagefit.toolchain import terraform_binary, terraform_environment


@contextlib.contextmanager
def cloud(folder: Path) -> Iterator[dict[str, str]]:
    """The environment for Terraform while a cloud of our own runs; its files lie in the folder."""
    found = {key: value for key, value in os.environ.items() if not key.startswith("TF_")}
    found |= terraform_environment(home()) | {
        "NO_COLOR": "1",
        "PATH": f"{terraform_binary(home()).parent}:{found['PATH']}",
    }

    def at_home(act: Callable[[], Any]) -> Any:
        with pytest.MonkeyPatch.context() as patch:  # no longer: what is installed in our own home is used meanwhile
            patch.setenv("SAGEFIT_HOME", str(folder))
            return act()

    at_home(control.up)
    try:
        yield at_home(lambda: control.clean_environment(found))
    finally:
        at_home(control.down)


def publish(document: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Make a platform's document known, as its apply would."""
    make: Any = boto3.client
    client = make(
        "ssm",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    client.put_parameter(Name=f"/sagefit/{document['name']}", Value=json.dumps(document), Type="String")


def terraform(root: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """What a command prints that must succeed."""
    done = run(root, environment, *arguments)
    assert done.returncode == 0, f"{done.stdout[-20_000:]}{done.stderr[-20_000:]}"
    return done.stdout


def run(root: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that may fail."""
    command = ["terraform", f"-chdir={root}", *arguments]
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)


def planned(root: Path, environment: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    """The JSON of a plan of this root."""
    terraform(root, environment, "plan", "-input=false", "-refresh=false", "-out=plan.tfplan", *arguments)
    found: dict[str, Any] = json.loads(terraform(root, environment, "show", "-json", "plan.tfplan"))
    return found
