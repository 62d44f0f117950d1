"""Results as rows of text: the same cells for the terminal and for the pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sagefit.examples.result import COMPLETED, PLANNED, Result, Step

HEADINGS = ("job", "status", "attempts", "predicted GiB", "measured GiB", "metric")


def cells(result: Result) -> tuple[str, ...]:
    """One row. Peaks are those of the attempt that completed, or of the last one."""
    if result.status == PLANNED:
        return (result.name, PLANNED, "", "", "", "")
    last = result.last
    return (
        result.name,
        result.status,
        _attempts(result),
        _predicted(last),
        f"{last.measured_gib:.2f}" if last and last.measured_gib is not None else "",
        ", ".join(f"{name}={value:.5g}" for name, value in result.metrics.items()),
    )


def _attempts(result: Result) -> str:
    """Which attempt completed, and what ended those before: ``2 of 3: streaming, after host_memory``."""
    if not result.last:
        return ""
    before = [step.outcome for step in result.steps[:-1]]
    end = result.last.name if result.status == COMPLETED else f"{result.last.name} ({result.last.outcome})"
    after = f", after {', '.join(before)}" if before else ""
    return f"{len(result.steps)} of {result.planned}: {end}{after}"


def _predicted(step: Step | None) -> str:
    if step is None or step.predicted_gib is None:
        return ""
    bound = step.predicted_upper_gib
    return f"{step.predicted_gib:.2f}" + (f", at most {bound:.2f}" if bound is not None else "")


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of a page, without columns that are empty in every row."""
    table = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    kept = [column for column in range(len(headings)) if any(row[column] for row in table)]
    lines = [[headings[column] for column in kept], ["---"] * len(kept)]
    lines += [[row[column] for column in kept] for row in table]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
