"""Commands that bring a job's definition to its platform: ``render``, ``plan``, ``apply``, ``destroy``, ``run``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from sagefit import deploy, running
from sagefit.cli.runs import follow
from sagefit.cli.shared import JobArgument, ResumeOption, YesOption, agreed, print_plan, say, target
from sagefit.console import command, err
from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.job.pinned import pin_note
from sagefit.job.problem import Problem
from sagefit.job.upload_rules import check_texts
from sagefit.memory.lookalikes import remarks
from sagefit.paths import display
from sagefit.planning import JobPlan
from sagefit.planning import plan as plan_of
from sagefit.planning.remarks import plan_remarks
from sagefit.planning.rendered import check_rendered, write
from sagefit.platform import load_platform

app = typer.Typer()


@app.command("render")
def render_command(
    job: JobArgument,
    check: Annotated[bool, typer.Option("--check", help="Only fail (exit code 1) if the file is out of date.")] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the text, write nothing.")] = False,
) -> None:
    """Write the job's tfvars, which Terraform reads and which are committed beside the job file."""
    planned = _plan(job)
    check_texts(planned.job)
    if stdout:
        sys.stdout.write(planned.text)
    elif check:
        check_rendered(planned)
    else:
        path, changed = write(planned)
        err.print(f"{display(path)} {'written' if changed else 'is up to date'}")


@app.command()
def plan(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A name in jobs/ or the path of a job file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for plan, JSON and record, to be reviewed.")
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="All that differs from --base.")] = False,
    every: Annotated[bool, typer.Option("--all", help="All platforms and jobs here.")] = False,
    stack: Annotated[
        str | None, typer.Option("--stack", metavar="KEY", help="One: PLATFORM/platform or PLATFORM/jobs/JOB.")
    ] = None,
    base: Annotated[str | None, typer.Option("--base", metavar="REF", help="What is merged into.")] = None,
    parallel: Annotated[int | None, typer.Option("--parallel", min=1, help="How many plans at once.")] = None,
    expires: Annotated[float, typer.Option("--expires", min=0, help="Hours for which a plan may be applied.")] = 24,
    no_changes: Annotated[bool, typer.Option("--no-changes", help="Fail if any plan does something (drift).")] = False,
) -> None:
    """Render and plan one job; prints the plan, saves it for `apply`, creates nothing. With --out, for a review."""
    several = changed or every
    if sum((job is not None, several, stack is not None)) != 1 or (changed and every):
        raise SagefitError("plan: name one JOB, or --stack KEY, or --changed, or --all")
    if several or stack or out or no_changes:
        from sagefit.cli import gitops  # for a review alone, as below: it loads the whole loop

        choice = gitops.Choice(job, stack, changed, every, base)
        gitops.plan_for_review(choice, out, parallel=parallel, hours=expires, no_changes=no_changes)
        return
    assert job is not None  # noqa: S101 - the only one left
    where, job_plan = target(), _plan(job)
    with deploy.job_terraform(job_plan.job, where).held():
        planned = deploy.plan_job(job_plan, where)
        print_plan(planned.terraform, planned.plan)
    if not planned.plan.is_empty:
        err.print(f"apply exactly this plan: {command('apply', job)}", soft_wrap=True)


@app.command("apply")
def apply_command(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A name in jobs/ or the path of a job file.")
    ] = None,
    reviewed: Annotated[
        Path | None,
        typer.Option("--reviewed", metavar="DIR", help="Apply what `plan --out DIR` planned; all without JOB."),
    ] = None,
    replan: Annotated[
        bool, typer.Option("--replan", help="Where time has passed, plan again; go on if that does the same.")
    ] = False,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            "--approve",
            metavar="RULE:ADDRESS",
            envvar="SAGEFIT_APPROVE",
            help="A finding that blocks a reviewed plan and is accepted; repeatable.",
        ),
    ] = None,
) -> None:
    """Apply the plan that `plan` saved, exactly as it was saved; or plans that were reviewed, if they still hold."""
    if reviewed:
        from sagefit.cli import gitops

        gitops.apply_reviewed_plans(job, reviewed, replan=replan, approved=approve or [])
        return
    if job is None or replan or approve:
        raise SagefitError("apply: name a JOB, or --reviewed DIR (which --replan and --approve belong to)")
    job_plan = JobPlan(load_job(job))
    deploy.apply_saved(job_plan, target())
    err.print(f"{job_plan.job.name} applied")


@app.command()
def destroy(job: JobArgument, yes: YesOption = False) -> None:
    """Remove a job: its state machine, role and uploaded code. Outputs and checkpoints of its runs stay."""
    where, loaded = target(), load_job(job, uploads=False)
    job_plan = JobPlan(loaded)
    with deploy.job_terraform(loaded, where).held():
        planned = deploy.plan_job(job_plan, where, destroy=True)
        if agreed(planned.plan, planned.where, yes=yes):
            deploy.apply_saved(job_plan, where)
            err.print(f"{loaded.name} destroyed")
        else:
            err.print(f"{loaded.name}: nothing to destroy")


@app.command("run")
def run_command(job: JobArgument, yes: YesOption = False, resume: ResumeOption = None) -> None:
    """Render, plan, apply, start and watch one job: what `make job` calls."""
    where, job_plan = target(), _plan(job)
    name = job_plan.job.name
    before = running.find_run(resume) if resume else None
    if before:
        running.resumable(job_plan.job, load_platform(job_plan.job.platform), before, say)
    with deploy.job_terraform(job_plan.job, where).held():
        planned = deploy.plan_job(job_plan, where)
        if agreed(planned.plan, f"{planned.where}; {planned.worst_case}", yes=yes):
            deploy.apply_saved(job_plan, where)
            err.print(f"{name} applied")
        else:
            err.print(f"{name} is up to date")
    run = running.start(planned.job, planned.platform, resume=before, tell=say)
    err.print(f"run {run.name} started")
    follow(run, where, job_plan)


def _plan(reference: str) -> JobPlan:
    """The job's plan, and a word about an own image that is not what its sources are now."""
    job = load_job(reference)
    if note := pin_note(job):
        err.print(f"note: {note}", markup=False, soft_wrap=True)
    _look_again(job, remarks(job))
    planned = plan_of(job)
    _look_again(job, plan_remarks(planned))
    return planned


def _look_again(job: Job, found: Iterable[Problem]) -> None:
    for remark in job.told(list(found)):
        err.print(f"look again: {remark}", markup=False, soft_wrap=True)
