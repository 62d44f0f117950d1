"""A root that plans all jobs of a team by ``for_each``: few resources a job, and a change stays with its job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkout import copy_tree
from plans.cases import FOLDER
from plans.terraform import PlanJson, plan

pytestmark = pytest.mark.xdist_group("plans")

_VALUES = (FOLDER / "modules" / "training-job" / "minimal.tfvars").read_text(encoding="utf-8")
_ROOT = """
terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}

variable "slower" {
  default = ""
}

module "job" {
  source   = "./../modules/training-job"
  for_each = toset([for n in range(%(number)d) : format("job-%%02d", n)])

  name            = each.key
  code            = { source_dir = "../modules/training-job/tests/example/code", entry_point = "train.py" }
  hyperparameters = { epochs = each.key == var.slower ? "20" : "10" }
%(values)s
}
"""


@pytest.mark.parametrize(
    "number",
    [3, pytest.param(50, marks=pytest.mark.full(witness="tests/plans/test_many_jobs.py"))],
)
def test_many_jobs_are_planned_by_one_block(environment: dict[str, str], tmp_path: Path, number: int) -> None:
    copy_tree(tree := tmp_path / "tree")
    (root := tree / "team").mkdir()
    values = "\n".join(line for line in _VALUES.splitlines() if not line.startswith("name "))
    (root / "main.tf").write_text(_ROOT % {"number": number, "values": values}, encoding="utf-8")
    before = _jobs(plan(root, environment))
    assert list(before) == [f'module.job["job-{n:02}"]' for n in range(number)]
    for job, resources in before.items():
        assert len([address for address in resources if ".aws_s3_object.code[" not in address]) <= 20
        assert all(address.startswith(f"{job}.") for address in resources)
    after = _jobs(plan(root, environment, "-var=slower=job-01"))
    changed = [address for job, found in after.items() for address in found if found[address] != before[job][address]]
    assert changed == ['module.job["job-01"].aws_sfn_state_machine.this']


def _jobs(planned: PlanJson) -> dict[str, dict[str, Any]]:
    """The values of every resource, by its job and its address."""
    modules = planned["planned_values"]["root_module"]["child_modules"]
    return {
        module["address"]: {resource["address"]: resource["values"] for resource in module["resources"]}
        for module in modules
    }
