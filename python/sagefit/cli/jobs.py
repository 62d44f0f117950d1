"""Commands that bring a job's definition to its platform: ``render``, ``plan``, ``apply``, ``destroy``, ``run``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sagefit import deploy, runs
from sagefit.cli.runs import follow
from sagefit.cli.shared import JobArgument, YesOption, agreed, print_plan, target
from sagefit.console import command, err
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.paths import display
from sagefit.render import check_rendered, render, write

app = typer.Typer()


@app.command("render")
def render_command(
    job: JobArgument,
    check: Annotated[bool, typer.Option("--check", help="Only fail (exit code 1) if the file is out of date.")] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the text, write nothing.")] = False,
) -> None:
    """Write the job's tfvars, which Terraform reads and which are committed beside the job file."""
    loaded = load_job(job)
    if stdout:
        sys.stdout.write(render(loaded))
    elif check:
        check_rendered(loaded)
    else:
        path, changed = write(loaded)
        err.print(f"{display(path)} {'written' if changed else 'is up to date'}")


@app.command()
def plan(job: JobArgument) -> None:
    """Render and plan one job; prints the plan, saves it for `apply`, creates nothing."""
    planned = deploy.plan_job(load_job(job), target())
    print_plan(planned.terraform, planned.plan)
    if not planned.plan.is_empty:
        err.print(f"apply exactly this plan: {command('apply', job)}", soft_wrap=True)


@app.command("apply")
def apply_command(job: JobArgument) -> None:
    """Apply the plan that `plan` saved, exactly as it was saved."""
    loaded = load_job(job)
    deploy.apply_saved(loaded, target())
    err.print(f"{loaded.name} applied")


@app.command()
def destroy(job: JobArgument, yes: YesOption = False) -> None:
    """Remove a job: its state machine, role and uploaded code. Outputs and checkpoints of its runs stay."""
    where = target()
    planned = deploy.plan_job(load_job(job), where, destroy=True)
    if agreed(planned.plan, planned.where, yes=yes):
        deploy.apply_saved(planned.job, where)
        err.print(f"{planned.job.name} destroyed")
    else:
        err.print(f"{planned.job.name}: nothing to destroy")


@app.command("run")
def run_command(job: JobArgument, yes: YesOption = False) -> None:
    """Render, plan, apply, start and watch one job: what `make job` calls."""
    where = target()
    planned = deploy.plan_job(load_job(job), where)
    if agreed(planned.plan, f"{planned.where}; {planned.worst_case}", yes=yes):
        deploy.apply_saved(planned.job, where)
        err.print(f"{planned.job.name} applied")
    else:
        err.print(f"{planned.job.name} is up to date")
    run = runs.start(planned.job, planned.platform)
    err.print(f"run {run.name} started")
    follow(run, where, planned.job)


@app.command(hidden=True)
def review(plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan, or a job.")]) -> None:
    """Not in this version: it says what to read instead."""
    raise SagefitError(
        "review: this version has no reviewer's page", hint=f"read the plan itself: {command('plan', plan)}"
    )
