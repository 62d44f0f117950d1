"""``sagefit recover``: after an apply that was killed."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from sagefit import deploy
from sagefit.cli.shared import YesOption, agreed, target
from sagefit.console import command, err
from sagefit.gitops import bundle
from sagefit.job import load_job
from sagefit.planning import plan
from sagefit.planning.rendered import write
from sagefit.recover import recover
from sagefit.target import Target
from sagefit.terraform import Terraform

app = typer.Typer()


@app.command("recover")
def recover_command(
    stack: Annotated[
        str, typer.Argument(metavar="STACK", help="A job, PLATFORM/platform or PLATFORM/jobs/JOB, as in errors.")
    ],
    yes: YesOption = False,
    lock: Annotated[
        str | None, typer.Option("--lock", metavar="ID", help="Release this lock, whoever holds it.")
    ] = None,
) -> None:
    """After a killed apply: release the lock that it left, and take what it made into the state.

    A lock of somebody who may still be at work is left alone. What would be taken into the state is shown before, and
    what is not of this stack is left out (exit code 4). Plan and apply then go on where the apply ended.
    """
    terraform = _terraform(stack, target())
    where = f"the state of {terraform.key}"
    count = recover(terraform, lambda plan: agreed(plan, where, yes=yes), lock=lock)
    if count:
        err.print(f"{terraform.key}: {count} taken into the state; plan again to go on: {_plan(terraform)}")
    else:
        err.print(f"{terraform.key}: its state misses nothing that exists")


def _terraform(stack: str, where: Target) -> Terraform:
    if re.fullmatch(r"[^/]+/(platform|jobs/[^/]+)", stack):
        ready = bundle.ready(stack, where)
        job, terraform = ready.stack.job, ready.terraform
    else:
        job = load_job(stack)
        terraform = deploy.job_terraform(job, where)
    if job and not job.tfvars.exists():
        write(plan(job))
    return terraform


def _plan(terraform: Terraform) -> str:
    platform, _, kind = terraform.key.partition("/")
    return command("platform", "plan", platform) if kind == "platform" else command("plan", terraform.called)
