"""Plans by the real Terraform and the real AWS provider, without an account.

The provider asks AWS a few things while it plans: who the caller is, what a platform has published, and whether the
definition of a state machine is valid. The embedded cloud answers; nothing is created in it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from checkout import copy_tree
from cloud.aws_user import Aws
from plans.cases import Case
from plans.normalise import Plan, normalise
from sagefit.cloud import control
from sagefit.paths import home
from sagefit.toolchain import terraform_binary, terraform_environment

PlanJson = dict[str, Any]
# Settings of this user or of an outer Terraform that would change what is planned, and for whom.
_FOREIGN = ("AWS_", "TF_VAR_", "TF_CLI_ARGS", "TF_DATA_DIR", "TF_WORKSPACE", "TF_LOG")

_ROOT = """
terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}
"""

_CASE = """
module "%(module)s" {
  source = "./../%(target)s"
%(values)s
}

output "%(module)s" {
  value = module.%(module)s
}
"""


@contextmanager
def embedded_cloud(folder: Path) -> Iterator[dict[str, str]]:
    """An embedded cloud, and the environment of a Terraform that talks to it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    # A plan of all jobs at once would take two gigabytes of memory where Go collects seldom.
    kept |= terraform_environment(home()) | {"NO_COLOR": "1", "GOGC": "200"}

    def at_home(act: Callable[[], Any]) -> Any:
        with pytest.MonkeyPatch.context() as patch:  # while it starts and ends; other tests have homes of their own
            patch.setenv("SAGEFIT_HOME", str(folder))
            return act()

    at_home(control.up)
    try:
        yield at_home(lambda: control.clean_environment(kept))
    finally:
        at_home(control.down)


def publish(document: dict[str, Any], environment: dict[str, str]) -> None:
    """Put a platform's document where the jobs of that platform read it."""
    user = Aws(environment)
    try:
        name, value = f"/sagefit/{document['name']}", json.dumps(document)
        user.client("ssm").put_parameter(Name=name, Type="String", Value=value, Overwrite=True)
    finally:
        user.close()


def plan_all(cases: Sequence[Case], folder: Path, environment: dict[str, str]) -> dict[str, Plan]:
    """Plan cases in a new folder. Jobs come last, on the platforms that were planned before."""
    copy_tree(folder)
    plans: dict[str, Plan] = {}
    for are_jobs in (False, True):
        if some := [case for case in cases if case.name.startswith("job/") == are_jobs]:
            made = _plan_together(some, folder / f"plans-{'jobs' if are_jobs else 'rest'}", environment)
            for output in made["output_changes"].values():
                document = (output["after"] or {}).get("document") if isinstance(output["after"], dict) else None
                if document:
                    publish(document, environment)
            plans |= {case.name: normalise(made, case.module) for case in some}
    return plans


def _plan_together(cases: Sequence[Case], root: Path, environment: dict[str, str]) -> PlanJson:
    """Plan cases side by side, as modules of one root: one start of the provider for all."""
    root.mkdir()
    calls = [_CASE % {"module": case.module, "target": case.target, "values": case.values} for case in cases]
    (root / "main.tf").write_text(_ROOT + "".join(calls), encoding="utf-8")
    return plan(root, environment)


def plan(root: Path, environment: dict[str, str], *options: str) -> PlanJson:
    """Initialise and plan a root without refreshing its state, and return the plan as JSON."""
    terraform(root, environment, "init")
    terraform(root, environment, "plan", "-refresh=false", "-out=plan", *options)
    shown: PlanJson = json.loads(terraform(root, environment, "show", "-json", "plan"))
    return shown


def terraform(root: Path, environment: dict[str, str], *arguments: str) -> str:
    """Run Terraform in a folder and return its output; what it says of a failure fails the test."""
    done = subprocess.run(
        [terraform_binary(home()), f"-chdir={root}", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"terraform {' '.join(arguments)}\n{done.stdout[-20_000:]}{done.stderr}"
    return done.stdout
