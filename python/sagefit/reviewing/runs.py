"""Beside a plan: what the job cost and needed when it ran, what runs now, and which jobs share a platform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from sagefit.reviewing.links import Console
from sagefit.reviewing.md import cell, code

MOST = 5
"""Runs that a page tells of."""
_NAMED = 12

_Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]


@dataclass(frozen=True)
class PastRun:
    """A run of a job: memory in GiB of the fullest GPU and host of any attempt, price in USD of all of them.

    ``ended`` says how, in words; empty while it is in progress. ``attempts`` counts them, and ``hardware`` is that of
    the last. What is not known is None.
    """

    name: _Name
    started: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d$")]
    ended: Annotated[str, Field(max_length=60)] = ""
    attempts: Annotated[int, Field(ge=0, le=1000)] = 0
    hardware: Annotated[str, Field(max_length=200)] = ""
    gpu_gib: _Amount | None = None
    host_gib: _Amount | None = None
    usd: _Amount | None = None
    estimated: bool = False


@dataclass(frozen=True)
class Runs:
    """What there is to tell: the ``last`` runs of a job, newest first, and the names of those in progress.

    Of a platform: the ``jobs`` that share it, and their runs in progress. ``unknown`` says why nothing is known.
    """

    last: Annotated[list[PastRun], Field(max_length=MOST)] = field(default_factory=list)
    in_progress: Annotated[list[_Name], Field(max_length=1000)] = field(default_factory=list)
    jobs: Annotated[list[_Name], Field(max_length=10_000)] = field(default_factory=list)
    unknown: Annotated[str, Field(max_length=300)] = ""

    def lines(self, console: Console | None = None) -> Iterator[str]:
        """Paragraphs; none where there is nothing to tell."""
        if self.jobs:
            yield "### Who shares it"
            yield f"{_many(len(self.jobs), 'job')} of this platform: {_named(self.jobs)}."
        elif self.last or self.unknown:
            yield "### Last runs"
        if self.last:
            yield _table(self.last, console)
        if self.in_progress:
            runs = f"{_many(len(self.in_progress), 'run')} in progress"
            yield f"**{runs}**: {_named(self.in_progress)}. What has begun goes on with the definition it began with."
        if self.last or self.in_progress:
            yield "As the side that planned read it from AWS; no finding rests on it."
        if self.unknown:
            yield f"Nothing is known of {'their runs' if self.jobs else 'them'}: {code(self.unknown)}"


def _table(runs: list[PastRun], console: Console | None) -> str:
    rows = ["| run | started (UTC) | ended | on | memory, at most | USD |", "|---|---|---|---|---|--:|"]
    for run in runs:
        tried = f" ({_many(run.attempts, 'attempt')})" if run.attempts > 1 else ""
        told = (("GPU", run.gpu_gib), ("host", run.host_gib))
        memory = ", ".join(f"{what} {gib:.1f} GiB" for what, gib in told if gib is not None)
        usd = f"{'about ' if run.estimated else ''}{run.usd:,.2f}" if run.usd is not None else "-"
        rows.append(
            f"| {console.of_run(run.name) if console else cell(run.name)} | {run.started} "
            f"| {cell(run.ended) if run.ended else 'in progress'}{tried} "
            f"| {cell(run.hardware) if run.hardware else '-'} | {memory or '-'} | {usd} |"
        )
    return "\n".join(rows)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(code, names[:_NAMED])) + more
