"""Stacks to interrupt: a small root with resources of several kinds, in a checkout of its own, behind a gate."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psutil

from checkout import copy_tree
from cli_runner import Sagefit
from interruptions.gate import Gate
from sagefit.processes import running
from sagefit.terraform.backend import EMBEDDED_BUCKET

_ROOT = """
terraform {
  backend "local" {}

  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.100" }
  }
}

variable "name" {
  type = string
}

data "aws_caller_identity" "this" {}

resource "aws_iam_role" "this" {
  name = "stack-${var.name}"
  tags = { "sagefit:platform" = var.name }

  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "states.amazonaws.com" } }]
  })
}

resource "aws_cloudwatch_log_group" "this" {
  for_each = toset(["a", "b"])
  name     = "/stack-${var.name}/${each.key}"
}

resource "aws_ssm_parameter" "this" {
  count = 5
  name  = "/stack-${var.name}/${count.index}"
  type  = "String"
  value = "of ${data.aws_caller_identity.this.account_id}"
}
"""
_S3 = """
terraform {
  backend "s3" {
    bucket       = "states"
    region       = "us-east-1"
    use_lockfile = true
  }
}
"""
LOCAL, S3 = "local", "S3"
IS_CREATE = ("Action=CreateRole", "Logs_20140328.CreateLogGroup", "AmazonSSM.PutParameter")


def is_create(request: str) -> bool:
    """Whether a request makes a resource of such a stack."""
    return any(word in request for word in IS_CREATE)


@dataclass
class Ground:
    """An embedded cloud behind a gate, and a checkout for each backend."""

    sagefit: Sagefit
    gate: Gate
    trees: dict[str, Path]

    @classmethod
    @contextlib.contextmanager
    def prepared(cls, folder: Path, trees: dict[str, Path] | None = None) -> Iterator[Ground]:
        """Copy the checkouts, where there are none, and start the cloud."""
        trees = trees or {backend: _checkout(folder / backend, backend) for backend in (LOCAL, S3)}
        with Gate() as gate:
            gate.serve()
            ground = cls(Sagefit(folder / "home", CLOUD="local"), gate, trees)
            try:
                ground.restart()
                yield ground
            finally:
                ground.sagefit("cloud", "down")
                gate.shutdown()

    def restart(self) -> None:
        """Start a cloud, and let it be found by its gate alone."""
        self.sagefit("cloud", "up")
        record = self.sagefit.home / "cloud" / "cloud.json"
        found = json.loads(record.read_text(encoding="utf-8"))
        self.gate.to = found["port"]
        record.write_text(json.dumps(found | {"port": self.gate.server_port}), encoding="utf-8")

    def stack(self, name: str, backend: str) -> Stack:
        """A stack that is not there yet."""
        tree = self.trees[backend]
        (tree / "platforms" / f"{name}.tfvars").write_text(f'name = "{name}"\n', encoding="utf-8")
        (temporary := self.sagefit.home.parent / "tmp").mkdir(exist_ok=True)  # of providers that are killed: sockets
        own = {"PYTHONPATH": str(tree / "python"), "TMPDIR": str(temporary)}
        return Stack(name, backend, self, Sagefit(self.sagefit.home, CLOUD="local", **own))

    def client(self, service: str) -> Any:
        """A boto3 client that passes by the gate."""
        found = json.loads((self.sagefit.home / "cloud" / "cloud.json").read_text(encoding="utf-8"))
        make: Any = boto3.Session(found["access_key"], found["secret_key"], region_name="us-east-1").client
        return make(service, endpoint_url=f"http://127.0.0.1:{self.gate.to}")


@dataclass
class Stack:
    """A platform with the small root."""

    name: str
    backend: str
    ground: Ground
    sagefit: Sagefit

    @property
    def key(self) -> str:
        """Its key, as in ``--stack``."""
        return f"{self.name}/platform"

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs; it is in a session of its own, as one in a terminal is."""
        with subprocess.Popen(
            [sys.executable, "-m", "sagefit", *words],
            cwd=self.ground.trees[self.backend],
            env=self.sagefit.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def apply(self) -> str:
        """Plan and apply; what is said."""
        return self.sagefit("platform", "apply", self.name, "--yes").err

    def terraforms(self) -> list[psutil.Process]:
        """Processes of Terraform and its providers at work for this stack, and not for one of its name elsewhere."""
        found = []
        for process in running():
            with contextlib.suppress(psutil.Error, OSError):
                at = process.environ().get("TF_DATA_DIR", "")
                own = at.startswith(str(self.sagefit.home)) and at.endswith(f"/{self.key}")
                if own and "terraform" in process.name():
                    found.append(process)
        return found

    def terraform(self) -> psutil.Process:
        """The one Terraform at work."""
        (found,) = (process for process in self.terraforms() if process.name() == "terraform")
        return found

    def printed(self) -> str | None:
        """What the Terraform at work has printed; None where none is at work."""
        for file in self.sagefit.home.rglob(f"work/{self.key}/out"):
            with contextlib.suppress(FileNotFoundError):
                return file.read_text(encoding="utf-8")
        return None

    def made(self) -> dict[str, int]:
        """What of the stack is in the cloud, by kind."""
        name = f"stack-{self.name}"
        roles = self.ground.client("iam").list_roles()["Roles"]
        groups = self.ground.client("logs").describe_log_groups(logGroupNamePrefix=f"/{name}/")["logGroups"]
        parameters = self.ground.client("ssm").get_parameters_by_path(Path=f"/{name}")["Parameters"]
        return {
            "roles": sum(role["RoleName"] == name for role in roles),
            "log groups": len(groups),
            "parameters": len(parameters),
        }

    def locks(self) -> list[str]:
        """Locks of the state that are left."""
        if self.backend == LOCAL:
            return [str(path) for path in self.sagefit.home.rglob(f"{self.name}/.*.lock.info")]
        found = self.ground.client("s3").list_objects_v2(Bucket=EMBEDDED_BUCKET, Prefix=f"sagefit/{self.name}/")
        return [each["Key"] for each in found.get("Contents", []) if each["Key"].endswith(".tflock")]


def _checkout(tree: Path, backend: str) -> Path:
    copy_tree(tree)
    for file in tree.glob("*.tf"):
        file.unlink()
    (tree / "main.tf").write_text(_ROOT, encoding="utf-8")
    if backend == S3:
        (tree / "backend_override.tf").write_text(_S3, encoding="utf-8")
    (tree / "platforms").mkdir(exist_ok=True)
    return tree


WHOLE = {"roles": 1, "log groups": 2, "parameters": 5}
