"""Commands about runs: ``start``, ``watch``, ``stop``, ``runs``, ``diagnose``."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import ClientError
from rich.text import Text

from sagefit import failures, running
from sagefit.cli.shared import JobArgument, ResumeOption, say, target
from sagefit.cloud import differences
from sagefit.console import command, err, out
from sagefit.errors import FAILED, SagefitError
from sagefit.job import job_names, load_job
from sagefit.planning import JobPlan
from sagefit.platform import load_platform
from sagefit.running import Run, RunRecord, view
from sagefit.size.measured import saving_of
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
    follow(found, where, _plan(found, run), logs=logs)


@app.command()
def stop(run: RunArgument) -> None:
    """Stop a run and the job it has running."""
    target()
    found = running.find_run(run)
    stopped = running.stop(found)
    err.print(f"{found.name} stopped" + "".join(f"; {name} is stopping" for name in stopped))
    _print_how_to_go_on(found, _plan(found, run), "start")


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
        record = running.expected(running.read_run(run), _plan(run, job))
        if as_json:
            print(json.dumps(view.as_json(record)))
        else:
            _print_record(record)


_STANDARD_INPUT = Path("-")
_CONFIDENCE = {"A": "A, certain", "B": "B, seen in public reports", "C": "C, only likely"}


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
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Say what ended an attempt, with the evidence, and what to change in the job file.

    Also of a job that Sagefit never saw, of any cloud: give its log with --log, or through a pipe to `diagnose -`.
    """
    files = [*(log or []), *([_STANDARD_INPUT] if run == "-" else [])]
    run = None if run == "-" else run
    given = bool(files) or any(fact is not None for fact in (reason, exit_code, secondary_status))
    if (run is not None) == given:
        raise SagefitError(
            "diagnose takes either a run, or what is known of a failure", hint="see sagefit diagnose --help"
        )
    routed_by, record, lost, growth = None, None, "", ""
    if run is not None:
        target()
        record = running.read_run(running.find_run(run))
        failed = [attempt for attempt in record.attempts if attempt.diagnosis]
        steps = [step for step in record.steps if step.diagnosis]
        if failed and failed[-1].diagnosis:
            err.print(f"attempt {failed[-1].index} {failed[-1].name}:")
            diagnosis, routed_by = failed[-1].diagnosis, failed[-1].routed_by
            logs, lost = _logs(failed[-1].log_job, training=True), view.lost(failed[-1])
            growth = failed[-1].growth
        elif steps and steps[-1].diagnosis:
            err.print(f"processing {steps[-1].name}:")
            diagnosis = steps[-1].diagnosis
            logs = _logs(steps[-1].processing_job, training=False)
        else:
            err.print("no attempt of this run has failed")
            return
    else:
        logs = {"standard input" if path == _STANDARD_INPUT else str(path): _read(path) for path in files}
        diagnosis = failures.diagnose(reason, secondary_status=secondary_status, log=logs, exit_code=exit_code)
    found = failures.around(logs, diagnosis)
    if as_json:
        told = {"around": found.as_json() if found else None} | ({"growth": growth} if growth else {})
        print(json.dumps(diagnosis.as_json() | told))
        return
    out.print(Text(diagnosis.failure_class, style="bold"))
    out.print(Text(f"evidence: {diagnosis.evidence}"), soft_wrap=True)
    out.print(Text(f"confidence: {_CONFIDENCE[diagnosis.confidence]}"))
    if found:
        _print_excerpt(found)
    for other in diagnosis.rejected:
        out.print(Text(f"not {other.failure_class}: {other.evidence} ({other.why})"), soft_wrap=True)
    if lost:
        out.print(Text(f"lost: {lost}"), soft_wrap=True)
    if routed_by:
        out.print(Text(f"the run took it for {routed_by}, by the failure reason alone"), soft_wrap=True)
    if growth:
        out.print(Text(f"perhaps a leak: {growth}"), soft_wrap=True)
    for remedy in (*(failures.OF_GROWTH if growth else ()), *diagnosis.remedies):
        out.print(Text(f"try: {remedy}"), soft_wrap=True)
    if record and record.is_over and not record.succeeded:
        _print_how_to_go_on(record.run, _plan(record.run, run), "run")


def _read(path: Path) -> list[str]:
    """The lines of a log; those from standard input may be many, and only their end is kept."""
    if path != _STANDARD_INPUT:
        return failures.read_log(path)
    if sys.stdin.isatty():
        err.print("paste the log, then end it with Ctrl-D")
    return failures.read_stream(sys.stdin.buffer)


def _logs(name: str, *, training: bool) -> dict[str, list[str]]:
    """The end of each host's log; none where they may not be read, or are gone."""
    with contextlib.suppress(ClientError):
        return running.tails(name) if training else running.tails(name, running.PROCESSING_LOGS)
    return {}


def _print_excerpt(found: failures.Excerpt) -> None:
    """The lines around the cause, each with its number; an arrow shows the cause."""
    who = f"{found.host}, {found.rank}" if found.rank else found.host
    out.print(Text(f"{who}, line {found.first + found.at}:"), soft_wrap=True)
    width = len(str(found.first + len(found.lines)))
    for place, line in enumerate(found.lines):
        mark = ">" if place == found.at else " "
        style = "bold" if place == found.at else "dim"
        out.print(Text(f"{mark} {found.first + place:>{width}} | {line}", style=style), soft_wrap=True)


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
    last, region = record.attempts[-1], record.run.platform.region
    used = last.host_peak_gib, last.gpu_peak_gib
    with contextlib.suppress(SagefitError):  # the job file was changed since, and its memory block contradicts itself
        if saving := saving_of(job_plan, last.name, (last.instance_type, last.instance_count), used, region):
            out.print(Text(f"cheaper: {saving.text}"), soft_wrap=True)
    how = command("size", job_plan.job.reference, "--runs")
    err.print(f"to size the job by what its runs measured: {how}", soft_wrap=True)


def _plan(run: Run, reference: str | None) -> JobPlan | None:
    """The plan of a run's job file, where it is known: the one that was named, or the one in ``jobs/``."""
    with contextlib.suppress(SagefitError):
        named = reference if reference and reference.endswith((".yaml", ".yml")) else run.job
        job = load_job(named, uploads=False)
        return JobPlan(job) if job.name == run.job else None
    return None
