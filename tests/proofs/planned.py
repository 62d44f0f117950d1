"""What Terraform plans for the examples of this repository and for a job at its limits, without an account.

One ``terraform test`` run with a mocked provider plans them all and prints the plan as JSON: state machine definitions
and policies are read from it as they would be sent to AWS.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkout import copy_tree
from proofs.job_at_limits import job_at_limits
from proofs.job_with_steps import job_with_steps
from proofs.jobs_with_needs import job_to_debug, job_with_own_network
from sagefit.paths import ROOT, home
from sagefit.toolchain import terraform_binary, terraform_environment

ACCOUNT, REGION = "123456789012", "us-east-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
SUBNET, GROUP = "subnet-0aaaaaaaaaaaaaaaa", "sg-0aaaaaaaaaaaaaaaa"

_TUNES = ROOT / "examples" / "tuning" / "tuning.tfvars"
# Modules with a state machine: the example of modules/training-job, all jobs, one that tunes, one at its limits, one
# with processing steps, one that is debugged, and on each platform one with a network of its own.
OWN_NETWORK = {f"own_network_{platform}": platform for platform in ("minimal", "private")}
_OF_FILES = sorted(path.stem for path in (ROOT / "jobs").glob("*.tfvars"))
JOBS = ("example.module.job", *_OF_FILES, _TUNES.stem, "at_limits", "steps", "debugged", *OWN_NETWORK)

# The platform that tests/example of the module reads from the parameter store.
_DOCUMENT = {
    "schema": 1,
    "name": "dev",
    "partition": "aws",
    "region": REGION,
    "account_id": ACCOUNT,
    "role_arn": f"arn:aws:iam::{ACCOUNT}:role/sagefit-dev-execution",
    "buckets": {key: f"sagefit-dev-{key}" for key in ("data", "artifacts", "checkpoints")},
}

_ROOT = f"""
terraform {{
  required_providers {{
    aws = {{
      source = "hashicorp/aws"
    }}
  }}
}}

module "minimal" {{
  source = "../examples/platforms/minimal"
}}

# Everything that adds permissions: a key, a network, a warm pool, a bucket of others.
module "private" {{
  source         = "./.."
  name           = "private"
  kms            = {{ key_arn = "{KEY}" }}
  network        = {{ subnet_ids = ["{SUBNET}"], security_group_ids = ["{GROUP}"], isolation = true }}
  warm_pools     = {{ small = {{ instance_type = "ml.g5.xlarge", keep_alive_seconds = 1800 }} }}
  execution_role = {{ buckets = {{ mine = {{ name = "my-data" }} }} }}
}}

module "example" {{
  source = "../modules/training-job/tests/example"
}}

output "minimal" {{
  value = {{ document = module.minimal.document, engineer = module.minimal.engineer_policy_json }}
}}

output "private" {{
  value = {{ document = module.private.document, engineer = module.private.engineer_policy_json }}
}}
"""

_JOB = """
module "%s" {
  source   = "../modules/training-job"
  platform = module.%s.document
%s
}
"""

_TEST = f"""
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
}}

run "plan" {{
  command = plan
}}
"""


_CLEANUP = "run_cleanup[0]"
_MARKED = {"execution": ":execution"}  # modules/training-job has two roles


@dataclass(frozen=True)
class Planned:
    """Resources and outputs of the plan."""

    resources: list[dict[str, Any]]
    outputs: dict[str, dict[str, Any]]

    def definitions(self) -> dict[str, dict[str, Any]]:
        """State machine definitions of jobs by module."""
        return {module: json.loads(text) for module, text in self.texts().items() if not module.endswith(_CLEANUP)}

    def cleanups(self) -> list[dict[str, Any]]:
        """State machine definitions of platforms."""
        return [json.loads(text) for module, text in self.texts().items() if module.endswith(_CLEANUP)]

    def role_policies(self) -> dict[str, list[dict[str, Any]]]:
        """Inline policies of roles by module; those of a job's own execution role by ``MODULE:execution``."""
        found: dict[str, list[dict[str, Any]]] = {}
        for module, after in self._of("aws_iam_role_policy"):
            found.setdefault(module, []).append(json.loads(after["policy"]))
        return found

    def execution_policies(self, job: str) -> list[dict[str, Any]]:
        """Policies of a job's own execution role: its data, and what is attached."""
        role = f"{job}:execution"
        made = {f"policy{after['path']}{after['name']}": after["policy"] for _, after in self._of("aws_iam_policy")}
        attached = [after["policy_arn"] for name, after in self._of("aws_iam_role_policy_attachment") if name == role]
        return self.role_policies()[role] + [json.loads(made[arn.split(":", 5)[5]]) for arn in attached]

    def trusts(self) -> dict[str, dict[str, Any]]:
        """Trust policies of roles, called as in ``role_policies``."""
        return {module: json.loads(after["assume_role_policy"]) for module, after in self._of("aws_iam_role")}

    def engineer(self, platform: str) -> list[dict[str, Any]]:
        """The policy a platform offers for its engineers."""
        return [json.loads(self.outputs[platform]["engineer"])]

    def texts(self) -> dict[str, str]:
        """State machine definitions as they are sent."""
        return {module: after["definition"] for module, after in self._of("aws_sfn_state_machine")}

    def document(self, platform: str) -> dict[str, Any]:
        """What a platform publishes for its jobs; that of the example is given."""
        if platform == "example":
            return _DOCUMENT
        found: dict[str, Any] = self.outputs[platform]["document"]
        return found

    def _of(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        return [
            (
                resource["module_address"].removeprefix("module.") + _MARKED.get(resource["name"], ""),
                resource["change"]["after"],
            )
            for resource in self.resources
            if resource["type"] == kind
        ]


def plan(tree: Path) -> Planned:
    """Plan everything in a copy of the checkout."""
    copy_tree(tree)
    folder = tree / "proof"
    folder.mkdir()
    jobs = [_job(path) for path in [*(ROOT / "jobs").glob("*.tfvars"), _TUNES]]
    jobs.append(_JOB % ("at_limits", "private", _attributes(job_at_limits())))
    jobs.append(_JOB % ("steps", "private", _attributes(job_with_steps())))
    jobs.append(_JOB % ("debugged", "minimal", _attributes(job_to_debug())))
    jobs += [
        _JOB % (name, platform, _attributes(job_with_own_network(ACCOUNT, REGION)))
        for name, platform in OWN_NETWORK.items()
    ]
    (folder / "main.tf").write_text("\n".join([_ROOT, *jobs]), encoding="utf-8")
    (folder / "plan.tftest.hcl").write_text(_TEST, encoding="utf-8")
    _terraform(folder, "init", "-backend=false")
    for line in _terraform(folder, "test", "-json", "-verbose").splitlines():
        message = json.loads(line)
        if message["type"] == "test_plan":
            found = message["test_plan"]
            outputs = {name: output["after"] for name, output in found["output_changes"].items()}
            return Planned(found["resource_changes"], outputs)
    raise AssertionError("Terraform printed no plan")


def _job(tfvars: Path) -> str:
    """A module call with the values of a rendered job; they are written as one writes arguments."""
    values = re.sub(r"(?m)^platform +=.*$", "", tfvars.read_text(encoding="utf-8"))
    return _JOB % (tfvars.stem, "minimal", values)


def _attributes(values: dict[str, Any]) -> str:
    return "\n".join(f"  {name} = {json.dumps(value)}" for name, value in values.items())


def _terraform(folder: Path, *arguments: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TF_", "AWS_"))}
    done = subprocess.run(
        [terraform_binary(home()), f"-chdir={folder}", *arguments],
        env=environment | terraform_environment(home()) | {"AWS_REGION": REGION, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}{done.stderr}"
    return done.stdout
