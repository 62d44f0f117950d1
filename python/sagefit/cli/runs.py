"""Commands about runs: ``start``, ``watch``, ``stop``, ``runs``, ``diagnose``."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sagefit import explaining, failures, running
from sagefit.cli.shared import JobArgument, ResumeOption, say, target
from sagefit.cloud import differences
from sagefit.console import command, err, out
from sagefit.errors import FAILED, SagefitError
from sagefit.explaining import view as page
from sagefit.job import job_names, load_job
from sagefit.paths import display
from sagefit.planning import JobPlan
from sagefit.platform import load_platform
from sagefit.running import Run, RunRecord, view
from sagefit.target import Target

app = typer.Typer()

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run, or a job for its latest run.")]


@app.command()
def start(job: JobArgument, resume: ResumeOption = None) -> None:
    """Start a run of an applied job and print its name."""
    target()
    loaded = load_job(job)
    before = running.find_run(resume) if resume else None
    print(running.start(loaded, load_platform(loaded.platform), resume=before, tell=say).name)


@app.command()
def watch(
    run: RunArgument, logs: Annotated[bool, typer.Option("--logs", help="Print what the training jobs print.")] = False
) -> None:
    """Follow a run to its end. Ctrl-C leaves the run alone."""
    where = target()
    found = running.find_run(run)
    follow(found, where, plan_of(found, run), logs=logs)


@app.command()
def stop(run: RunArgument) -> None:
    """Stop a run and the job it has running."""
    target()
    found = running.find_run(run)
    stopped = running.stop(found)
    err.print(f"{found.name} stopped" + "".join(f"; {name} is stopping" for name in stopped))
    _print_how_to_go_on(found, plan_of(found, run), "start")


@app.command("runs")
def runs_command(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="A job or one run; without it, all jobs.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many runs of a job.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """The ledger: every attempt with why it was made, its outcome and evidence, peak memory, billed time, price, and
    what came next.
    """
    target()
    found: list[Run] = []
    for name in [job] if job else job_names():
        if name in job_names() or name.endswith((".yaml", ".yml")):
            loaded = load_job(name, uploads=False)
            found += running.latest_runs(loaded.name, load_platform(loaded.platform), limit=limit if job else 1)
        else:
            found.append(running.find_run(name))
    if not found:
        err.print(f"no runs yet; start one: {command('run')} JOB")
    for run in found:
        record = running.expected(running.read_run(run), plan_of(run, job))
        if as_json:
            print(json.dumps(view.as_json(record)))
        else:
            _print_record(record)


_STANDARD_INPUT = Path("-")


@app.command()
def diagnose(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|-]", help="A run, or a job for its latest run; - for a log from standard input."),
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="The FailureReason of a training job.")] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option("--log", exists=True, dir_okay=False, help="A host's log, or its end; once for each host."),
    ] = None,
    exit_code: Annotated[int | None, typer.Option("--exit-code", help="What the training process ended with.")] = None,
    secondary_status: Annotated[
        str | None, typer.Option("--secondary-status", help="The SecondaryStatus of a training job.")
    ] = None,
    apply: Annotated[
        int | None, typer.Option("--apply", min=1, help="Write change N of those that are shown into the job file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Say what ended an attempt, with the evidence and what was lost, and what to change in the job file.

    Of a run the changes are shown as diffs of its job file. Each was tried: the file with it is read, checked and
    planned. --apply N writes one.

    Also of a job that Sagefit never saw, of any cloud: give its log with --log, or through a pipe to `diagnose -`.
    """
    files = [*(log or []), *([_STANDARD_INPUT] if run == "-" else [])]
    run = None if run == "-" else run
    given = bool(files) or any(fact is not None for fact in (reason, exit_code, secondary_status))
    if apply is not None and (run is None or as_json):
        raise SagefitError("--apply takes a run, and no --json", hint="see sagefit diagnose --help")
    if (run is not None) == given:
        raise SagefitError(
            "diagnose takes either a run, or what is known of a failure", hint="see sagefit diagnose --help"
        )
    if run is not None:
        _explain(run, apply, as_json=as_json)
        return
    logs = {"standard input" if path == _STANDARD_INPUT else str(path): _read(path) for path in files}
    diagnosis = failures.diagnose(reason, secondary_status=secondary_status, log=logs, exit_code=exit_code)
    found = failures.around(logs, diagnosis)
    if as_json:
        print(json.dumps(diagnosis.as_json() | {"around": found.as_json() if found else None}))
        return
    for told in (*page.cause(diagnosis, found), *page.rejected(diagnosis), *page.advice(diagnosis)):
        out.print(told, soft_wrap=True)


def _explain(reference: str, apply: int | None, *, as_json: bool) -> None:
    """The page about a run's failure; or one of its changes, applied."""
    where = target()
    record = running.read_run(running.find_run(reference))
    name, plan = record.run.name, plan_of(record.run, reference)
    found = explaining.explain(record, plan, where.name)
    if found is None:
        err.print("no attempt of this run has failed")
        return
    if apply is not None:
        if plan is None:
            raise SagefitError(
                f"--apply {apply}: the job file of {name} is not here", hint="give the path of the job file as RUN"
            )
        written = explaining.apply(found, apply, plan.job)
        for line in found.remedies[apply - 1].diff.splitlines():
            print(line)
        err.print(f"{display(written)} written. To see it: {command('plan', plan.job.reference)}", soft_wrap=True)
    elif as_json:
        print(json.dumps(found.diagnosis.as_json() | found.as_json()))
        return
    else:
        err.print(f"{found.what}:")
        for told in page.page(found, name):
            out.print(told, soft_wrap=True)
    if record.is_over and not record.succeeded:
        _print_how_to_go_on(record.run, plan, "run")


def _read(path: Path) -> list[str]:
    """The lines of a log; those from standard input may be many, and only their end is kept."""
    if path != _STANDARD_INPUT:
        return failures.read_log(path)
    if sys.stdin.isatty():
        err.print("paste the log, then end it with Ctrl-D")
    return failures.read_stream(sys.stdin.buffer)


def follow(run: Run, where: Target, job_plan: JobPlan | None = None, *, logs: bool = False) -> None:
    """Watch a run to its end and print its ledger, with predictions where its job is known.

    Raises typer.Exit (1) when the run failed.
    """
    image = job_plan.job.image if job_plan else None
    named = (image.framework or image.algorithm or image.uri) if image else None
    if where.is_local and (told := differences.of_a_run(named, image.version if image else None)):
        err.print(told, soft_wrap=True)
    try:
        record = running.watch(run, where, logs=logs)
    except KeyboardInterrupt:
        follow, end = command("watch", run.name), command("stop", run.name)
        err.print(f"\nthe run goes on. Follow it: {follow}; stop it: {end}", soft_wrap=True)
        raise
    _print_record(running.expected(record, job_plan))
    if job_plan and record.succeeded:
        _print_lesson(job_plan, record)
    if not record.succeeded:
        last = record.attempts[-1].log_job if record.attempts else ""
        if last and not logs and (lines := running.last_lines(last)):
            err.print("the end of its log:")
            for line in lines:
                err.print(Text(f"  {line}"), soft_wrap=True)
        say(f"to see why, and what would have held it: {command('diagnose', run.name)}")
        say(f"as a page, with pictures: {command('report', run.name)}")
        _print_how_to_go_on(run, job_plan, "run")
        raise typer.Exit(FAILED)


def _print_how_to_go_on(run: Run, job_plan: JobPlan | None, verb: str) -> None:
    """Say how a new run begins where this one ended, if its job keeps checkpoints. AWS is not asked for them."""
    if job_plan and job_plan.job.resources.checkpoints and not job_plan.job.tuning:
        how = command(verb, job_plan.job.reference, "--resume", run.name)
        say(f"to begin a run with its checkpoints: {how}")


def _print_record(record: RunRecord) -> None:
    out.print(Text(view.totals(record), style="bold"))
    out.print(view.ledger(record))
    for told in view.story(record):
        out.print(told, soft_wrap=True)
    for line in view.results(record):
        out.print(Text(line), soft_wrap=True)


def _print_lesson(job_plan: JobPlan, record: RunRecord) -> None:
    """What the run teaches of the job's size."""
    if saving := explaining.cheaper(record, job_plan):
        out.print(Text(f"cheaper: {saving}"), soft_wrap=True)
    how = command("size", job_plan.job.reference, "--runs")
    err.print(f"to size the job by what its runs measured: {how}", soft_wrap=True)


def plan_of(run: Run, reference: str | None) -> JobPlan | None:
    """The plan of a run's job file, where it is known: the one that was named, or the one in ``jobs/``."""
    with contextlib.suppress(SagefitError):
        named = reference if reference and reference.endswith((".yaml", ".yml")) else run.job
        job = load_job(named, uploads=False)
        return JobPlan(job) if job.name == run.job else None
    return None
