"""One plan, by real Terraform and the real provider, of all that is judged: ours, fixtures, and planted faults.

The embedded cloud answers what a plan asks of AWS: who calls, the platform document, and whether a definition is valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checkout import copy_tree
from policies.offline import cloud, planned, publish, terraform
from sagefit.paths import ROOT

FIXTURES = ROOT / "tests" / "policies" / "fixtures"
CHECKS = sorted(folder.name for folder in FIXTURES.iterdir() if folder.name.startswith("CKV"))
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
DOCUMENT = {
    "schema": 1,
    "name": "dev",
    "partition": "aws",
    "region": "us-east-1",
    "account_id": "123456789012",
    "role_arn": "arn:aws:iam::123456789012:role/sagefit-dev-execution",
    "buckets": {key: f"sagefit-dev-{key}" for key in ("data", "artifacts", "checkpoints")},
}

# The root as it is, and a platform that says it is regulated, with a job.
OWN = f"""
module "root" {{
  source = "./.."
}}

module "regulated" {{
  source  = "./.."
  name    = "regulated"
  kms     = {{ key_arn = "{KEY}" }}
  network = {{ subnet_ids = ["subnet-0a"], security_group_ids = ["sg-0a"], isolation = true }}
  tags    = {{ "sagefit:regulated" = "true" }}
}}

module "regulated_job" {{
  source    = "../modules/training-job"
  name      = "regulated"
  platform  = module.regulated.document
  image     = {{ repository = "", tag = "1.0" }}
  attempts  = [{{ name = "main", instance_type = "ml.m5.large" }}]
  resources = {{ encrypt_inter_container_traffic = true }}
}}
"""

# A team that turns its alarms off and calls itself regulated; and a module whose author took the wrong things out.
PLANTED = """
module "planted_platform" {
  source  = "./.."
  name    = "planted"
  alarms  = { thresholds = { host_memory = 0, gpu_memory = 99 } }
  buckets = { force_destroy = true }
  tags    = { "sagefit:regulated" = "true" }
}

module "planted_job" {
  source    = "../modules/planted-job"
  name      = "planted"
  platform  = module.planted_platform.document
  image     = { framework = "pytorch", version = "2.5" }
  resources = { encrypt_inter_container_traffic = false }
  attempts = [{
    name             = "main"
    instance_type    = "ml.m5.large"
    instance_count   = 2
    spot             = true
    max_wait_seconds = 86400
    next             = { host_memory = "larger" }
    }, {
    name          = "larger"
    instance_type = "ml.m5.xlarge"
    next          = { host_memory = "main" }
  }]
}
"""
_TAKEN_OUT = [
    ("attempts.tf", "CheckpointConfig = !var.resources.checkpoints ? null : {", "CheckpointConfig = true ? null : {"),
    ("iam.tf", "Resource  = [local.execution_role_arn]", 'Resource  = ["*"]'),
    ("iam.tf", '"sagemaker:KeepAlivePeriod" = tostring(max(', '"sagemaker:MaxWaitTimeInSeconds" = tostring(max('),
    ("iam.tf", '"sagemaker:InstanceTypes"       = distinct(flatten(local._machine_types))', ""),
    ("variables-attempts.tf", "try(index(var.attempts[*].name, t) > i, false)", "true"),
]

_JOBS = sorted((ROOT / "jobs").glob("*.tfvars"))
_EXAMPLES = sorted(path.parent for path in (ROOT / "examples" / "platforms").glob("*/main.tf"))
OWN_MODULES = [
    *re.findall(r'(?m)^module "(\w+)"', OWN),
    *(path.stem for path in _JOBS),
    *(f"example_{folder.name}" for folder in _EXAMPLES),
]
PLANTED_MODULES = re.findall(r'(?m)^module "(\w+)"', PLANTED)


def plan(tree: Path, folder: Path) -> dict[str, Any]:
    """The plan's JSON, made in a copy of the checkout; ``folder`` is for the cloud."""
    copy_tree(tree)
    _plant(tree)
    root = tree / "everything"
    root.mkdir()
    called = [
        *(_call(path.stem, "job", path.read_text(encoding="utf-8")) for path in _JOBS),
        *(_call(f"example_{folder.name}", f"examples/platforms/{folder.name}") for folder in _EXAMPLES),
        *(_call(check, f"tests/policies/fixtures/{check}") for check in CHECKS),
    ]
    (root / "main.tf").write_text("\n".join([OWN, PLANTED, *called]), encoding="utf-8")
    with cloud(folder) as environment:
        publish(DOCUMENT, environment)
        terraform(root, environment, "init", "-backend=false")
        return planned(root, environment)


def only(plan: Mapping[str, Any], *modules: str) -> dict[str, Any]:
    """The part of a plan below these modules of its root."""
    prefixes = tuple(f"module.{name}." for name in modules)
    children = plan["planned_values"]["root_module"]["child_modules"]
    kept = [child for child in children if f"{child['address']}.".startswith(prefixes)]
    changes = [change for change in plan["resource_changes"] if change["address"].startswith(prefixes)]
    return {**plan, "planned_values": {"root_module": {"child_modules": kept}}, "resource_changes": changes}


def _call(name: str, source: str, arguments: str = "") -> str:
    return f'module "{name}" {{\n  source = "../{source}"\n{arguments}}}\n'


def _plant(tree: Path) -> None:
    source, planted = tree / "modules" / "training-job", tree / "modules" / "planted-job"
    planted.mkdir()
    for path in source.iterdir():
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            for name, old, new in _TAKEN_OUT:
                if path.name == name:
                    assert old in text, f"{name} holds no {old!r} any more: plant the fault in another way"
                    text = text.replace(old, new)
            (planted / path.name).write_text(text, encoding="utf-8")
