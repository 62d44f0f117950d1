"""The command line: arguments in, words and an exit code out. The work is done in the other rooms."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.text import Text

from sagefit import deploy, runs
from sagefit.cloud.cli import app as cloud_app
from sagefit.console import command, err, out, remember_cloud
from sagefit.errors import DONE, FAILED, INTERRUPTED, INVALID, REFUSED, SagefitError
from sagefit.failures import classify
from sagefit.job import job_names, load_job
from sagefit.paths import display
from sagefit.platform import load_platform
from sagefit.render import check_rendered, render, write
from sagefit.runs import Run, RunRecord, view
from sagefit.target import AWS, Target, activate
from sagefit.terraform import Plan, Terraform

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="SageMaker training jobs that fit in memory.",
)
platform_app = typer.Typer(no_args_is_help=True, help="The shared part: role, buckets, repository, alarms, pools.")
app.add_typer(cloud_app, name="cloud", help="The embedded cloud, which runs everything with no AWS account.")
app.add_typer(platform_app, name="platform")

_cloud = AWS

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A name in jobs/ or the path of a job file.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run, or a job for its latest run.")]
PlatformArgument = Annotated[str, typer.Argument(metavar="NAME", help="The platform.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before applying.")]


@app.callback()
def _common(
    cloud: Annotated[
        str, typer.Option("--cloud", envvar=["SAGEFIT_CLOUD", "CLOUD"], help="aws, or local for the embedded cloud.")
    ] = AWS,
) -> None:
    global _cloud
    _cloud = cloud or AWS
    remember_cloud(_cloud)


def _target() -> Target:
    return activate(_cloud)


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
    planned = deploy.plan_job(load_job(job), _target())
    _print_plan(planned.terraform, planned.plan)
    if not planned.plan.is_empty:
        err.print(f"apply exactly this plan: {command('apply', job)}", soft_wrap=True)


@app.command("apply")
def apply_command(job: JobArgument) -> None:
    """Apply the plan that `plan` saved, exactly as it was saved."""
    loaded = load_job(job)
    deploy.apply_saved(loaded, _target())
    err.print(f"{loaded.name} applied")


@app.command()
def destroy(job: JobArgument, yes: YesOption = False) -> None:
    """Remove a job: its state machine, role and uploaded code. Outputs and checkpoints of its runs stay."""
    target = _target()
    planned = deploy.plan_job(load_job(job), target, destroy=True)
    if _agreed(planned.plan, planned.where, yes=yes):
        deploy.apply_saved(planned.job, target)
        err.print(f"{planned.job.name} destroyed")
    else:
        err.print(f"{planned.job.name}: nothing to destroy")


@app.command()
def start(job: JobArgument) -> None:
    """Start a run of an applied job and print its name."""
    _target()
    loaded = load_job(job)
    print(runs.start(loaded, load_platform(loaded.platform)).name)


@app.command()
def watch(
    run: RunArgument, logs: Annotated[bool, typer.Option("--logs", help="Print what the training jobs print.")] = False
) -> None:
    """Follow a run to its end. Ctrl-C leaves the run alone."""
    target = _target()
    _watch(runs.find_run(run), target, logs=logs)


@app.command()
def stop(run: RunArgument) -> None:
    """Stop a run and the training job it has running."""
    _target()
    found = runs.find_run(run)
    stopped = runs.stop(found)
    err.print(f"{found.name} stopped" + "".join(f"; training job {name} is stopping" for name in stopped))


@app.command("runs")
def runs_command(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="A job or one run; without it, all jobs.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many runs of a job.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """The ledger: every attempt with its outcome, evidence, peak memory, billed time and price."""
    _target()
    found: list[Run] = []
    for name in [job] if job else job_names():
        if name in job_names() or name.endswith((".yaml", ".yml")):
            loaded = load_job(name)
            found += runs.latest_runs(loaded.name, load_platform(loaded.platform), limit=limit if job else 1)
        else:
            found.append(runs.find_run(name))
    if not found:
        err.print(f"no runs yet; start one: {command('run')} JOB")
    for run in found:
        record = runs.read_run(run)
        if as_json:
            print(json.dumps(view.as_json(record)))
        else:
            _print_record(record)


@app.command("run")
def run_command(job: JobArgument, yes: YesOption = False) -> None:
    """Render, plan, apply, start and watch one job: what `make job` calls."""
    target = _target()
    planned = deploy.plan_job(load_job(job), target)
    if _agreed(planned.plan, f"{planned.where}; {planned.worst_case}", yes=yes):
        deploy.apply_saved(planned.job, target)
        err.print(f"{planned.job.name} applied")
    else:
        err.print(f"{planned.job.name} is up to date")
    run = runs.start(planned.job, planned.platform)
    err.print(f"run {run.name} started")
    _watch(run, target)


@app.command()
def diagnose(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run, or a job for its latest run.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="The FailureReason of a training job.")] = None,
    log: Annotated[
        Path | None, typer.Option("--log", exists=True, dir_okay=False, help="The training job's log, or its end.")
    ] = None,
    exit_code: Annotated[int | None, typer.Option("--exit-code", help="What the training process ended with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Say what ended an attempt, with the evidence, and what to change in the job file."""
    given = reason is not None or log is not None or exit_code is not None
    if (run is not None) == given:
        raise SagefitError(
            "diagnose takes either a run, or what is known of a failure", hint="see sagefit diagnose --help"
        )
    if run is not None:
        _target()
        failed = [attempt for attempt in runs.read_run(runs.find_run(run)).attempts if attempt.diagnosis]
        if not failed or failed[-1].diagnosis is None:
            err.print("no attempt of this run has failed")
            return
        err.print(f"attempt {failed[-1].index} {failed[-1].name}:")
        diagnosis = failed[-1].diagnosis
    else:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log else ()
        diagnosis = classify(reason, log=lines, exit_code=exit_code)
    if as_json:
        print(json.dumps(diagnosis.as_json()))
        return
    out.print(Text(diagnosis.failure_class, style="bold"))
    out.print(Text(f"evidence: {diagnosis.evidence}"), soft_wrap=True)
    for remedy in diagnosis.remedies:
        out.print(Text(f"try: {remedy}"), soft_wrap=True)


@app.command(hidden=True)
def size(job: JobArgument) -> None:
    """Not in this version: it checks the job file and says so."""
    load_job(job)
    raise SagefitError(
        "size: this version does not predict memory",
        hint="write the attempts with their instance types into the job file",
    )


@app.command(hidden=True)
def review(plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan, or a job.")]) -> None:
    """Not in this version: it says what to read instead."""
    raise SagefitError(
        "review: this version has no reviewer's page", hint=f"read the plan itself: {command('plan', plan)}"
    )


@platform_app.command("plan")
def platform_plan(name: PlatformArgument = "dev") -> None:
    """Plan the platform; prints the plan, creates nothing."""
    terraform = deploy.platform_terraform(name, _target())
    _print_plan(terraform, terraform.plan())


@platform_app.command("apply")
def platform_apply(name: PlatformArgument = "dev", yes: YesOption = False) -> None:
    """Plan, ask, and apply the platform."""
    terraform = deploy.platform_terraform(name, _target())
    saved = terraform.plan()
    if _agreed(saved, f"platform {name} ({_cloud})", yes=yes):
        terraform.apply(saved)
    err.print(f"platform {name} is up")


@platform_app.command("destroy")
def platform_destroy(name: PlatformArgument = "dev", yes: YesOption = False) -> None:
    """Remove the platform. Buckets that hold data refuse unless the platform was applied with force_destroy."""
    terraform = deploy.platform_terraform(name, _target())
    saved = terraform.plan(destroy=True)
    if _agreed(saved, f"platform {name} ({_cloud})", yes=yes):
        terraform.apply(saved)
    err.print(f"platform {name} destroyed")


def _agreed(saved: Plan, where: str, *, yes: bool) -> bool:
    """Show what a plan does and ask; False when it does nothing. Raises SagefitError (exit code 4) on a no."""
    if saved.is_empty:
        return False
    for line in saved.summary():
        err.print(f"  {line}", markup=False, soft_wrap=True)
    counts = {"to create": saved.count("create"), "to change": saved.count("update")}
    counts |= {"to replace": saved.count("replace"), "to destroy": saved.count("delete", "remove")}
    err.print(", ".join(f"{count} {what}" for what, count in counts.items() if count) or "outputs change")
    if not yes and not _confirmed(f"apply this to {where}?"):
        raise SagefitError("not applied", hint="answer yes, or give --yes (make: YES=1)", exit_code=REFUSED)
    return True


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    return err.input(f"{question} [y/N] ", markup=False).strip().lower() in ("y", "yes")


def _print_plan(terraform: Terraform, saved: Plan) -> None:
    sys.stdout.write(terraform.show(saved))


def _watch(run: Run, target: Target, *, logs: bool = False) -> None:
    try:
        record = runs.watch(run, target, logs=logs)
    except KeyboardInterrupt:
        follow, end = command("watch", run.name), command("stop", run.name)
        err.print(f"\nthe run goes on. Follow it: {follow}; stop it: {end}", soft_wrap=True)
        raise
    _print_record(record)
    if not record.succeeded:
        last = record.attempts[-1].training_job if record.attempts else ""
        if last and not logs:
            err.print("the end of its log:")
            for line in runs.last_lines(last):
                err.print(Text(f"  {line}"), soft_wrap=True)
        raise typer.Exit(FAILED)


def _print_record(record: RunRecord) -> None:
    out.print(Text(view.totals(record), style="bold"))
    out.print(view.ledger(record))
    for line in view.results(record):
        out.print(Text(line), soft_wrap=True)


def main() -> None:
    """Run the command line; every expected failure ends in a message and the exit code of the contract."""
    try:
        code = app(standalone_mode=False) or DONE
    except SagefitError as error:
        err.print(Text(f"error: {error.message}", style="red"), soft_wrap=True)
        if error.hint:
            err.print(Text(f"hint: {error.hint}"), soft_wrap=True)
        code = error.exit_code
    except typer.Exit as done:
        code = done.exit_code
    except typer.Abort:
        code = INTERRUPTED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (ClientError, BotoCoreError) as error:
        err.print(Text(f"error: AWS: {error}", style="red"), soft_wrap=True)
        code = FAILED
    except BrokenPipeError:  # `sagefit runs | head` has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    except Exception as error:
        code = _usage(error)
    sys.exit(code)


def _usage(error: Exception) -> int:
    """Click's own complaints about arguments; anything else is a defect and is shown in full."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show()
    return INVALID
