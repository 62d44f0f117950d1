"""With an attached provider Terraform plans what it plans with one that it starts itself."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sagefit.paths import home
from sagefit.processes import running
from sagefit.toolchain import terraform_binary, terraform_environment
from terraform import attached

pytestmark = [
    pytest.mark.xdist_group("attached"),
    pytest.mark.of_files(
        *("tests/terraform/*attached*.py", "tests/terraform/in_path.py", "python/sagefit/processes.py"),
    ),
]

MAIN = """
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "mock"
  secret_key                  = "mock"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
}
"""
STACK = """
resource "aws_s3_bucket" "this" {
  bucket = "data"
  tags   = { kept = true }
}

resource "aws_iam_role" "this" {
  name_prefix        = "role-"
  assume_role_policy = "{}"
}

resource "aws_s3_object" "this" {
  bucket = aws_s3_bucket.this.id
  key    = "code"
  source = "main.tf"
}

output "arn" {
  value = provider::aws::arn_build("aws", "iam", "", "123456789012", "role/x")
}
"""
REGIONS = """
provider "aws" {
  alias                       = "other"
  region                      = "eu-central-1"
  access_key                  = "mock"
  secret_key                  = "mock"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
}

data "aws_region" "this" {
}

data "aws_region" "other" {
  provider = aws.other
}

output "regions" {
  value = [data.aws_region.this.name, data.aws_region.other.name]
}
"""
SLOW = """
data "aws_caller_identity" "this" {
}
"""


@pytest.fixture(autouse=True, scope="module")
def _attached() -> Iterator[None]:
    """Also in sessions whose other tests do without."""
    with attached.providers():
        yield


class Root:
    """A root module, and Terraform in it."""

    def __init__(self, folder: Path, text: str, **settings: str) -> None:
        folder.mkdir()
        (folder / "main.tf").write_text(MAIN + text, encoding="utf-8")
        own = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TF_"))}
        self.folder, self.environment = folder, own | terraform_environment(home()) | settings

    def command(self, *words: str) -> list[str]:
        return [str(terraform_binary(home())), f"-chdir={self.folder}", *words, "-no-color"]

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def planned(self) -> dict[str, Any]:
        """What a plan of it holds, without its time."""
        self("init")
        self("plan", "-out=plan")
        plan: dict[str, Any] = json.loads(self("show", "-json", "plan"))
        return {name: value for name, value in plan.items() if name != "timestamp"}


def providers_of(root: Root) -> list[psutil.Process]:
    """The processes of providers that are at work in a folder."""
    found = []
    for process in running():
        with contextlib.suppress(psutil.Error, OSError):
            if "provider" in process.name() and process.cwd() == str(root.folder):
                found.append(process)
    return found


def wait_for(count: int, root: Root) -> None:
    end = time.monotonic() + 60
    while len(providers_of(root)) != count:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_the_plan_is_the_same(tmp_path: Path) -> None:
    here = Root(tmp_path / "attached", STACK)
    assert here.planned() == Root(tmp_path / "started", STACK, **attached.ITSELF).planned()
    assert not (here.folder / ".terraform.lock.hcl").exists()  # it was attached


def test_mistakes_are_refused_in_the_provider_s_words(tmp_path: Path) -> None:
    root = Root(tmp_path / "root", 'resource "aws_iam_role" "this" {\n  assume_role_policy = "no policy"\n}\n')
    root("init")
    assert '"assume_role_policy" contains an invalid JSON policy' in root("plan", code=1)


def test_types_that_the_checkout_does_not_name_are_not_there(tmp_path: Path) -> None:
    kind = "aws_" + "batch_job_queue"
    root = Root(tmp_path / "root", f'resource "{kind}" "this" {{\n}}\n')
    root("init")
    assert f'does not support resource type "{kind}"' in " ".join(root("plan", code=1).split())


def test_each_provider_block_has_its_own(tmp_path: Path) -> None:
    root = Root(tmp_path / "root", REGIONS)
    assert root.planned()["planned_values"]["outputs"]["regions"]["value"] == ["us-east-1", "eu-central-1"]


def test_providers_end_with_their_command(tmp_path: Path) -> None:
    """Also where it is killed, in the middle of a question to AWS that is never answered."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        root = Root(tmp_path / "root", SLOW, **endpoint)
        root("init")
        with subprocess.Popen(root.command("plan"), env=root.environment, stdout=subprocess.DEVNULL) as process:
            try:
                silent.settimeout(60)
                with silent.accept()[0]:
                    wait_for(1, root)
            finally:
                process.kill()
        wait_for(0, root)
