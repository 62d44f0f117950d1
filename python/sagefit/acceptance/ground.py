"""What the cases stand on: two platforms of their own, private subnets, and the role of a pipeline.

Everything is made and taken down by the commands that a user types. What a pipeline would apply is applied under the
rights of its role.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3

from sagefit.acceptance.cases import CI
from sagefit.acceptance.made import Made
from sagefit.children import Children
from sagefit.errors import DONE, FAILED, SagefitError
from sagefit.paths import ACCEPTANCE, ROOT, private_folder
from sagefit.platform import NoPlatformError, load_platform
from sagefit.target import ROLE, Target
from sagefit.terraform import Terraform
from sagefit.terraform.backend import OVERRIDE, embedded_bucket, read_backend

GROUND = "ground"
ROOT_OF_GROUND = ACCEPTANCE / "ground"
_ISSUER = "token.actions.githubusercontent.com"
# A role's policies are known everywhere in AWS some seconds after they were written (IAM, eventual consistency).
_SETTLES_SECONDS = 20
_MOST_SECONDS = 1800
_LAST_LINES = 15
_S3_BATCH = 1000

Tell = Callable[[str], None]


class Ground:
    """Platforms, network and role, each made when it is first asked for, and noted in ``made``."""

    def __init__(self, target: Target, account: str, region: str, made: Made, children: Children, tell: Tell) -> None:
        self._target = target
        self._account = account
        self._region = region
        self._made = made
        self._children = children
        self._tell = tell
        self._folder = target.folder / "acceptance" / "platforms"

    def check_free(self, platform: str) -> None:
        """Refuse a platform of this name that is not ours."""
        with contextlib.suppress(NoPlatformError):
            load_platform(platform)
            raise SagefitError(
                f"the account has a platform {platform!r}, which was not made from here; nothing was begun",
                hint="use another Region (AWS_REGION), or destroy it where it was made",
            )

    def make(self, platform: str) -> None:
        """Apply a platform, and before it what it stands on."""
        if platform == CI:
            self._make_ground()
        self._made.begin(platform)
        self._tell(f"platform {platform}: applying")
        variables = self._variables(platform)
        self.command(platform, "platform", "apply", platform, "--variables", str(variables), "--yes")

    def unmake(self, platform: str) -> None:
        """Destroy a platform. Buckets that its role may not empty are emptied first, by the one who runs the suite."""
        with contextlib.suppress(NoPlatformError):
            buckets = load_platform(platform).buckets
            for bucket in (buckets.data, buckets.artifacts, buckets.checkpoints):
                _empty(bucket)
        self._tell(f"platform {platform}: destroying")
        variables = self._folder / f"{platform}.tfvars"
        self.command(platform, "platform", "destroy", platform, "--variables", str(variables), "--yes")
        self._made.gone(platform)

    def unmake_ground(self) -> None:
        """Destroy network and role."""
        self._tell("network and role: destroying")
        terraform = self._terraform()
        with terraform.held():
            terraform.apply(terraform.plan(destroy=True))
        self._made.gone(GROUND)

    def command(self, platform: str, *words: str) -> str:
        """Run a Sagefit command, on the pipeline's platform as its role; what it printed. Raises SagefitError."""
        acting = {ROLE: str(self._outputs["role_arn"])} if platform == CI else {}
        said: list[str] = []
        code, text = self._children.follow(words, said.append, seconds=_MOST_SECONDS, environment=acting)
        if code != DONE:
            told = "\n".join(text.strip().splitlines()[-_LAST_LINES:]).removeprefix("error: ")
            raise SagefitError(f"sagefit {' '.join(words[:2])}: {told}", exit_code=FAILED)
        return text

    @cached_property
    def _outputs(self) -> dict[str, Any]:
        return self._terraform().outputs()

    def _make_ground(self) -> None:
        self._made.begin(GROUND)
        self._tell("network and role: applying")
        terraform = self._terraform()
        with terraform.held():
            saved = terraform.plan()
            if not saved.is_empty:
                terraform.apply(saved)
        if not self._target.is_local:
            time.sleep(_SETTLES_SECONDS)

    def _terraform(self) -> Terraform:
        path = private_folder(self._folder) / "ground.tfvars.json"
        if not path.exists():
            values = {"account_id": self._account, "region": self._region, "platform": CI}
            values |= _provider() | _state_bucket(is_local=self._target.is_local)
            path.write_text(json.dumps(values), encoding="utf-8")
        return Terraform(ROOT_OF_GROUND, f"acceptance/{GROUND}", self._target, variables=path)

    def _variables(self, platform: str) -> Path:
        lines = [f'name = "{platform}"', "checkpoint_days = 0", "unfinished_upload_days = 0"]
        if platform == CI:
            found = self._outputs
            lines += [
                "kms = { create = true }",
                f"permissions_boundary_arn = {json.dumps(found['permissions_boundary_arn'])}",
                "network = {",
                f"  subnet_ids = {json.dumps(found['subnet_ids'])}",
                f"  security_group_ids = {json.dumps(found['security_group_ids'])}",
                "  isolation = true",
                "  encrypt_inter_container_traffic = true",
                "}",
            ]
        else:
            lines += ["buckets = { force_destroy = true }", "repository = { force_delete = true }"]
        path = private_folder(self._folder) / f"{platform}.tfvars"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


def children(target: Target) -> Children:
    """Commands of a user on this cloud; only the suite says as which role."""
    kept = {name: value for name, value in os.environ.items() if name != ROLE}
    words = {"SAGEFIT_CLOUD": target.name, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    return Children(kept | words, folder=ROOT)


def _provider() -> dict[str, str]:
    """The account's provider for GitHub's tokens, if it has one: two of one address cannot be."""
    make: Any = boto3.client
    known = [each["Arn"] for each in make("iam").list_open_id_connect_providers()["OpenIDConnectProviderList"]]
    found = [str(arn) for arn in known if arn.endswith(f"oidc-provider/{_ISSUER}")]
    return {"oidc_provider_arn": found[0]} if found else {}


def _state_bucket(*, is_local: bool) -> dict[str, str]:
    """The bucket of the team's own backend, which the role then has to reach; it may not make one."""
    path = ROOT / OVERRIDE
    if not path.exists():
        return {}
    _, settings = read_backend(path.read_text(encoding="utf-8"))
    if is_local:
        return {"state_bucket": embedded_bucket()}
    return {"state_bucket": settings["bucket"]} if "bucket" in settings else {}


def _empty(bucket: str) -> None:
    """Delete every version of every object."""
    make: Any = boto3.client
    client = make("s3")
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        listed = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        objects = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in listed]
        for begin in range(0, len(objects), _S3_BATCH):
            client.delete_objects(Bucket=bucket, Delete={"Objects": objects[begin : begin + _S3_BATCH], "Quiet": True})
