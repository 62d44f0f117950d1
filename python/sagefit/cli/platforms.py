"""Commands of a platform: ``plan``, ``apply``, ``destroy``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sagefit import deploy, removal
from sagefit.cli.shared import YesOption, agreed, print_plan, say, target
from sagefit.console import cloud_name, err
from sagefit.taken import may_take
from sagefit.terraform import Terraform

app = typer.Typer(no_args_is_help=True, help="The shared part: role, buckets, repository, alarms, pools.")

PlatformArgument = Annotated[str, typer.Argument(metavar="NAME", help="The platform.")]
VariablesOption = Annotated[
    Path | None,
    typer.Option(
        "--variables", exists=True, dir_okay=False, metavar="FILE", help="Its tfvars; default platforms/NAME.tfvars."
    ),
]


@app.command("plan")
def platform_plan(name: PlatformArgument = "dev", variables: VariablesOption = None) -> None:
    """Plan the platform; prints the plan, creates nothing."""
    terraform = _terraform(name, variables)
    with terraform.held():
        print_plan(terraform, terraform.plan())


@app.command("apply")
def platform_apply(name: PlatformArgument = "dev", variables: VariablesOption = None, yes: YesOption = False) -> None:
    """Plan, ask, and apply the platform."""
    terraform = _terraform(name, variables)
    with terraform.held():
        saved = terraform.plan()
        takes = may_take((change.address, [change.action]) for change in saved.changes)
        if takes and (remark := deploy.platform_remark(name, terraform, saved)):
            say(f"look again: {remark}")
        if agreed(saved, f"platform {name} ({cloud_name()})", yes=yes):
            terraform.apply(saved)
    err.print(f"platform {name} is up")


@app.command("destroy")
def platform_destroy(name: PlatformArgument = "dev", variables: VariablesOption = None, yes: YesOption = False) -> None:
    """Remove the platform; nothing is, while jobs, buckets or its repository are in the way, which are named.

    A bucket or repository that holds something goes if the platform was applied with force_destroy or force_delete.
    """
    terraform = _terraform(name, variables)
    with terraform.held():
        saved = terraform.plan(destroy=True)
        if not saved.is_empty:
            with err.status("looking for what is in the way"):
                removal.refuse(json.loads(terraform.show_json(saved)), name, say)
        if agreed(saved, f"platform {name} ({cloud_name()})", yes=yes):
            terraform.apply(saved)
    err.print(f"platform {name} destroyed")


def _terraform(name: str, variables: Path | None) -> Terraform:
    return deploy.platform_terraform(name, target(), variables=variables)
