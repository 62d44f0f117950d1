"""Runs as tables for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from sagefit.job.values import duration
from sagefit.runs.ledger import COMPLETED, AttemptRecord, RunRecord


def ledger(record: RunRecord) -> Table:
    """The attempts of one run, one row each."""
    table = Table(title=None, box=None, pad_edge=False, header_style="bold")
    for heading, right in (
        ("#", True),
        ("attempt", False),
        ("instance", False),
        ("outcome", False),
        ("host peak", True),
        ("billed", True),
        ("USD", True),
        ("evidence", False),
    ):
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=heading != "evidence")
    for attempt in record.attempts:
        table.add_row(
            str(attempt.index),
            attempt.name,
            instance(attempt),
            outcome(attempt),
            f"{attempt.host_peak_gib:.2f} GiB" if attempt.host_peak_gib is not None else "-",
            duration(attempt.billable_seconds) if attempt.billable_seconds is not None else "-",
            f"{attempt.usd:.4f}" if attempt.usd is not None else "-",
            Text(attempt.evidence),
        )
    return table


def instance(attempt: AttemptRecord) -> str:
    """The instances of an attempt: ``2 x ml.g5.xlarge spot``."""
    many = f"{attempt.instance_count} x " if attempt.instance_count > 1 else ""
    return f"{many}{attempt.instance_type or '-'}{' spot' if attempt.spot else ''}"


def outcome(attempt: AttemptRecord) -> Text:
    """How an attempt ended, or what it does now."""
    if attempt.outcome == COMPLETED:
        return Text(COMPLETED, style="green")
    return Text(attempt.outcome, style="red") if attempt.outcome else Text(attempt.status, style="cyan")


def totals(record: RunRecord) -> str:
    """One line: what the run took and cost."""
    known = [a.usd for a in record.attempts if a.usd is not None]
    missing = any(a.usd is None and a.billable_seconds for a in record.attempts)
    cost = f"{sum(known):.4f} USD" + (" and attempts without a known price" if missing else "")
    took = f"{duration((record.ended - record.started).total_seconds())}, " if record.ended else ""
    return f"{record.run.name}: {record.status.lower()}, {took}{cost}"


def results(record: RunRecord) -> list[str]:
    """What a finished run brought: the metrics of its last attempt and where the model is, or why it failed."""
    lines = []
    last = record.attempts[-1] if record.attempts else None
    if last and last.metrics:
        lines.append("metrics: " + ", ".join(f"{name}={value:g}" for name, value in sorted(last.metrics.items())))
    if last and last.model:
        lines.append(f"model: {last.model}")
    if record.is_over and not record.succeeded and record.error:
        lines.append(f"failed: {record.error}" + (f": {last.evidence}" if last and last.evidence else ""))
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
        "attempts": [_attempt_json(attempt) for attempt in record.attempts],
    }


def _attempt_json(attempt: AttemptRecord) -> dict[str, Any]:
    diagnosis = attempt.diagnosis.as_json() if attempt.diagnosis else None
    return asdict(attempt) | {"evidence": attempt.evidence, "diagnosis": diagnosis}
