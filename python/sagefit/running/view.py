"""Runs as tables for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from sagefit.job.values import duration
from sagefit.running.records import COMPLETED, AttemptRecord, RunRecord, StepRecord

Job = AttemptRecord | StepRecord


def ledger(record: RunRecord) -> Table:
    """The steps and attempts of one run, one row each."""
    gpus = any(attempt.gpu_peak_gib is not None for attempt in record.attempts)
    headings = [">#", "attempt", "instance", "outcome", *([">GPU GiB"] if gpus else []), ">host GiB", ">billed", ">USD"]
    table = Table(title=None, box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(
            heading.removeprefix(">"), justify="right" if heading.startswith(">") else "left", overflow="fold"
        )
    for step in record.steps:
        table.add_row(
            f"p{step.index}",
            f"processing {step.name}",
            instance(step),
            outcome(step),
            *(["-"] if gpus else []),
            "-",
            billed(step),
            usd(step),
        )
    for attempt in record.attempts:
        table.add_row(
            str(attempt.index),
            attempt.name,
            instance(attempt),
            outcome(attempt),
            *([gib(attempt.gpu_peak_gib, attempt.gpu_limit_gib)] if gpus else []),
            gib(attempt.host_peak_gib, attempt.host_limit_gib),
            billed(attempt),
            usd(attempt),
        )
    return table


def story(record: RunRecord) -> Iterator[Text]:
    """Of each attempt why it was made, what ended it, and what came next."""
    if record.resumes:
        yield Text(f"began with the checkpoints of {record.resumes}")
    for step in record.steps:
        if step.diagnosis:
            yield Text(f"p{step.index} processing {step.name}", style="bold")
            yield from (Text(f"  {line}") for line in of_step(step))
    for attempt in record.attempts:
        yield Text(f"{attempt.index} {attempt.name}: {attempt.started_by}", style="bold")
        yield from (Text(f"  {line}") for line in of_attempt(attempt))


def of_step(step: StepRecord) -> Iterator[str]:
    """What ended a step that failed, and what to do; nothing of any other."""
    if step.diagnosis is None:
        return
    yield f"{step.outcome}: {step.evidence}"
    if not step.processing_job:
        yield "the request was refused: there never was a processing job"
    yield f"next: {next(iter(step.diagnosis.remedies), 'the run ends')}"


def of_attempt(attempt: AttemptRecord) -> Iterator[str]:
    """What ended an attempt, what was seen of it besides, and what came next."""
    if attempt.evidence:
        yield f"{attempt.outcome}: {attempt.evidence}"
    if attempt.interruptions:
        times = f"{attempt.interruptions} time{'s' if attempt.interruptions > 1 else ''}"
        yield f"interrupted {times}: SageMaker started it again"
    if attempt.idle:
        yield f"idle: {attempt.idle}"
    if attempt.filled_disk:
        yield f"disk: {attempt.filled_disk}"
    if told := lost(attempt):
        yield f"lost: {told}"
    if not attempt.training_job:
        yield "there never was a training job"
    if attempt.routed_by:
        yield f"the run took it for {attempt.routed_by}, by the reason alone: {attempt.failure_reason}"
    if attempt.search and attempt.outcome:
        yield f"searched: {attempt.search}"
    if predicted := _predicted(attempt):
        yield f"predicted by the job file as it is now: {predicted}"
    if attempt.next_step:
        yield f"next: {attempt.next_step}"


def lost(attempt: AttemptRecord, *, saved: bool = True) -> str:
    """The work that a failed attempt had done since its last checkpoint; nothing where that is not known, or little.

    ``saved`` tells whether it wrote one at all.
    """
    if attempt.lost_seconds is None or attempt.lost_seconds < 1:
        return ""
    about = "~" if attempt.usd is None else ""
    price = f", {about}{attempt.lost_usd:.4f} USD" if attempt.lost_usd is not None else ""
    since = "after its last checkpoint" if saved else "without a checkpoint"
    return f"{duration(attempt.lost_seconds)} of training {since}{price}"


def _predicted(attempt: AttemptRecord) -> str:
    gpu, host = attempt.predicted_gpu_gib, attempt.predicted_host_gib
    said = [f"GPU {gpu:.2f} GiB"] if gpu is not None else []
    return ", ".join(said + ([f"host {host:.2f} GiB"] if host is not None else []))


def gib(value: float | None, limit: float | None = None) -> str:
    """Memory in GiB, with its limit where that is known, or a dash.

    >>> gib(0.5601, 0.5), gib(140.2, 747.3), gib(0.25), gib(None)
    ('0.56 of 0.50', '140.20 of 747', '0.25', '-')
    """
    if value is None:
        return "-"
    return f"{value:.2f}" + ("" if limit is None else f" of {limit:.{2 if limit < 100 else 0}f}")


def billed(job: Job) -> str:
    """The time that is billed, or a dash."""
    return duration(job.billable_seconds) if job.billable_seconds is not None else "-"


def usd(attempt: Job) -> str:
    """The price in USD, with ``~`` if it is an estimated one, or why there is none."""
    if attempt.usd is not None:
        return f"{attempt.usd:.4f}"
    if attempt.estimated_usd is not None:
        return f"~{attempt.estimated_usd:.4f}"
    return "no price" if attempt.billable_seconds else "-"


def instance(attempt: Job) -> str:
    """The instances of an attempt: ``2 x ml.g5.xlarge spot``."""
    many = f"{attempt.instance_count} x " if attempt.instance_count > 1 else ""
    groups = attempt.groups if isinstance(attempt, AttemptRecord) else []
    what = " + ".join(groups) or f"{many}{attempt.instance_type or '-'}"
    return f"{what}{' spot' if attempt.spot else ''}"


def outcome(attempt: Job) -> Text:
    """How an attempt ended, or what it does now."""
    if attempt.outcome == COMPLETED:
        return Text(COMPLETED, style="green")
    return Text(attempt.outcome, style="red") if attempt.outcome else Text(doing(attempt), style="cyan")


def doing(attempt: Job) -> str:
    """What an attempt does now: its status, and what a search has tried."""
    return f"{attempt.status}, {attempt.search}" if attempt.search else attempt.status


def totals(record: RunRecord) -> str:
    """One line: how the run ended, what it took and cost."""
    return f"{record.run.name}: {record.status.lower()}, {took(record)}"


def took(record: RunRecord) -> str:
    """The time of a run that is over, and its price so far."""
    usd, estimated, missing = record.spent
    cost = f"{'~' if estimated else ''}{usd:.4f} USD{' (~ is by estimated prices)' if estimated else ''}"
    cost += " and attempts without a known price" if missing else ""
    return f"{duration((record.ended - record.started).total_seconds())}, {cost}" if record.ended else cost


def results(record: RunRecord) -> list[str]:
    """What a finished run brought: the metrics of its last attempt and where the model is, or why it failed."""
    lines = []
    last = record.attempts[-1] if record.attempts else None
    if last and last.metrics:
        lines.append("metrics: " + ", ".join(f"{name}={value:g}" for name, value in sorted(last.metrics.items())))
    if last and last.search and last.search.hyperparameters:
        tuned = ", ".join(f"{name}={value}" for name, value in sorted(last.search.hyperparameters.items()))
        lines.append(f"best hyperparameters: {tuned}")
    if last and last.model:
        empty = "empty, the script wrote nothing to SM_MODEL_DIR: " if last.model_is_empty else ""
        lines.append(f"model: {empty}{last.model}")
    if record.is_over and not record.succeeded and record.error:
        truth = f", which was {last.outcome}" if last and last.routed_by else ""
        told = next((job.evidence for job in (last, *reversed(record.steps)) if job and job.evidence), None)
        if told is None:  # nothing was started: what Step Functions says, unless these are the machine's own notes
            told = "" if last or record.cause.startswith("{") else record.cause
        lines.append(f"failed: {record.error}{truth}" + (f": {told}" if told else ""))
    return lines


def as_json(record: RunRecord) -> dict[str, Any]:
    """The run as plain data."""
    return {
        "run": record.run.name,
        "job": record.run.job,
        "platform": record.run.platform.name,
        "status": record.status,
        "started": record.started.isoformat(),
        "ended": record.ended.isoformat() if record.ended else None,
        "error": record.error,
        **({"resumes": record.resumes} if record.resumes else {}),
        **({"steps": [_job_json(step) for step in record.steps]} if record.steps else {}),
        "attempts": [_job_json(attempt) for attempt in record.attempts],
    }


def _job_json(job: Job) -> dict[str, Any]:
    diagnosis = job.diagnosis.as_json() if job.diagnosis else None
    price = {"lost_usd": job.lost_usd} if isinstance(job, AttemptRecord) else {}
    times = {
        name: time.isoformat() if time else None for name, time in (("created", job.created), ("ended", job.ended))
    }
    return asdict(job) | times | price | {"evidence": job.evidence, "diagnosis": diagnosis}
