"""Every policy of the modules and examples: Terraform plans them all in one run, with a provider that is mocked.

They are the cases of ``tests/plans``, and the roles of a pipeline; the plan of ``tests/proofs`` has the jobs. What the
provider would make, as the ARN of a new key, is made up, so that each policy is known in full.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkout import copy_tree
from plans.cases import FOLDER, all_cases
from plans.terraform import terraform
from sagefit.documents import parsed
from sagefit.paths import home
from sagefit.toolchain import terraform_environment

ACCOUNT, REGION = "123456789012", "us-east-1"
_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
_BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/training-boundary"

# Cases that are in the plan of the proofs, by these values or by others that say as much.
_PROVED = re.compile(r"root/default|examples/platforms/minimal/.*|modules/training-job/.*")

# The roles of a pipeline, once with what it makes itself, and once with all that may be given.
_PIPELINES: dict[str, dict[str, Any]] = {
    "github": {"state": {"bucket": "my-state"}},
    "gitlab": {
        "host": "gitlab",
        "oidc_provider_arn": f"arn:aws:iam::{ACCOUNT}:oidc-provider/gitlab.com",
        "permissions_boundary_arn": _BOUNDARY,
        "plan_branches": ["changes"],
        "platform_key_arns": [_KEY],
        "platforms": ["dev", "production"],
        "state": {"bucket": "my-state", "kms_key_arn": _KEY},
    },
}

# The platform that a job reads from the parameter store.
_DOCUMENT = {
    "schema": 1,
    "name": "dev",
    "partition": "aws",
    "region": REGION,
    "account_id": ACCOUNT,
    "role_arn": f"arn:aws:iam::{ACCOUNT}:role/sagefit-dev-execution",
    "buckets": {key: f"sagefit-dev-{key}" for key in ("data", "artifacts", "checkpoints")},
}

_MOCKED = f"""
mock_provider "aws" {{
  mock_data "aws_caller_identity" {{
    defaults = {{ account_id = "{ACCOUNT}", arn = "arn:aws:iam::{ACCOUNT}:root" }}
  }}
  mock_data "aws_partition" {{
    defaults = {{ partition = "aws", dns_suffix = "amazonaws.com" }}
  }}
  mock_data "aws_region" {{
    defaults = {{ id = "{REGION}", name = "{REGION}" }}
  }}
  mock_data "aws_ssm_parameter" {{
    defaults = {{ insecure_value = {json.dumps(json.dumps(_DOCUMENT))} }}
  }}
  mock_resource "aws_kms_key" {{
    override_during = plan
    defaults        = {{ arn = "{_KEY}" }}
  }}
  mock_resource "aws_security_group" {{
    override_during = plan
    defaults        = {{ id = "sg-0aaaaaaaaaaaaaaaa" }}
  }}
  mock_resource "aws_subnet" {{
    override_during = plan
    defaults        = {{ id = "subnet-0aaaaaaaaaaaaaaaa" }}
  }}
}}

run "plan" {{
  command = plan
}}
"""

_NEEDED = 'terraform {\n  required_providers {\n    aws = {\n      source = "hashicorp/aws"\n    }\n  }\n}\n'


@dataclass(frozen=True)
class Place:
    """A policy, or a statement alone, and where the plan holds it."""

    address: str
    attribute: tuple[str, str]
    """Type of the resource, or ``output``, and the path of the attribute without numbers and keys of maps."""
    document: Any


def plan(tree: Path) -> dict[str, Any]:
    """The JSON of the plan, made in a copy of the checkout."""
    copy_tree(tree)
    for path in (tree / "examples").rglob("*.tf"):
        # A provider of its own would not be mocked.
        text = re.sub(r'(?ms)^provider "aws" \{.*?^\}\n|^ +providers += [^\n]*\n', "", path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
    # What a check says of a job is a warning to users, and would be an error here.
    (tree / "modules" / "training-job" / "checks.tf").unlink()
    folder = tree / "policies-of-all"
    folder.mkdir()
    (folder / "main.tf").write_text("\n".join([_NEEDED, *_calls()]), encoding="utf-8")
    (folder / "plan.tftest.hcl").write_text(_MOCKED, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TF_", "AWS_"))}
    environment |= terraform_environment(home()) | {"AWS_REGION": REGION, "NO_COLOR": "1"}
    terraform(folder, environment, "init", "-backend=false")
    for line in terraform(folder, environment, "test", "-json", "-verbose").splitlines():
        message = json.loads(line)
        if message["type"] == "test_plan":
            found: dict[str, Any] = message["test_plan"]
            return found
    raise AssertionError("Terraform printed no plan")


def _calls() -> Iterator[str]:
    for case in all_cases():
        if case.target != "job":
            if not _PROVED.fullmatch(case.name):
                yield _call(case.module, case.target, case.values)
        elif (FOLDER / f"{case.name}.tfvars").exists():  # other jobs are those of jobs/, which are proved too
            yield _job(case.module, case.values)
    for name, values in _PIPELINES.items():
        given = {"account_id": ACCOUNT, "region": REGION, "repository": "ada/models"} | values
        yield _call(f"pipeline-{name}", "examples/gitops/roles", _written(given))


def _call(name: str, target: str, values: str) -> str:
    output = f'output "{name}" {{\n  value = module.{name}\n}}'
    return f'module "{name}" {{\n  source = "./../{target}"\n{values}\n}}\n{output}\n'


def _job(name: str, values: str) -> str:
    """A job on one of the example platforms."""
    [platform] = re.findall(r'(?m)^ *platform += "(.*)"$', values)
    document = f"module.examples-platforms-{platform}-default.document"
    return _call(name, "modules/training-job", re.sub(r"(?m)^ *platform +=.*$", f"platform = {document}", values))


def _written(values: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


def places(plan: dict[str, Any]) -> Iterator[Place]:
    """Everything in a plan that looks like a policy, or that is called one."""
    for change in plan["resource_changes"]:
        if change["mode"] == "managed":
            for path, document in _inside(change["change"]["after"], ()):
                yield Place(change["address"], (change["type"], ".".join(path)), document)
    for name, output in plan["output_changes"].items():
        for path, document in _inside(output["after"], ()):
            yield Place(f"output.{name}", ("output", ".".join(path)), document)


def _inside(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    called = bool(path) and re.fullmatch(r"(.*_)?policy(_json)?", path[-1]) is not None
    found = parsed(value)
    if isinstance(found, dict):
        if "Statement" in found or {"Effect", "Action"} <= set(found) or {"Effect", "NotAction"} <= set(found):
            yield path, found
            return
        if called and isinstance(value, str):
            yield path, found
        for name, part in found.items():
            yield from _inside(part, (*path, str(name)))
    elif isinstance(found, list):
        for part in found:
            yield from _inside(part, path)
    elif called and isinstance(found, str):
        yield path, found
