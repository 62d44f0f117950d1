"""What a job costs, a run and a month, and what change of that somebody must decide about.

Prices come from the packaged tables, so that a page is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.job.values import duration
from sagefit.machine.definition import Definition
from sagefit.planning import PlannedAttempt, attempt_usd, is_estimated, usd_per_hour, worst_case_usd
from sagefit.planning.candidate import SPOT_BILLABLE
from sagefit.reviewing.jobs.starts import Starts
from sagefit.reviewing.message import say
from sagefit.reviewing.rulebook import Hit, Severity

_FAR = 10
"""So many times what is allowed is a severe finding."""
_KEPT_SECONDS = 1800
"""Instances that are kept for less than this after a run are not worth a word."""


@dataclass(frozen=True)
class Allowed:
    """What a repository allows without a finding. USD; None for any amount.

    The factors say how much the worst case and the time limits of a job may grow by one change.
    """

    price_factor: float
    runtime_factor: float
    usd_per_run: float | None
    usd_per_month: float | None


@dataclass(frozen=True)
class Cost:
    """What one run costs in USD; None where a price is not known.

    ``worst`` is the dearest path with every attempt at its time limit. ``expected`` is the first attempt at its limit,
    on spot at the usual share of billed seconds. Processing steps are in both. ``kept`` is what the first attempt's
    warm pool costs after a run if no other run takes it, ``kept_seconds`` for how long it is kept at most.
    """

    worst: float | None
    expected: float | None
    estimated: bool
    seconds: int
    kept: float = 0.0
    kept_seconds: int = 0
    starts: Starts = field(default_factory=Starts)

    @property
    def month(self) -> float | None:
        """What a month costs by the schedule if each run is the worst case; None without one or without prices."""
        return self._month(self.worst)

    @property
    def expected_month(self) -> float | None:
        """What a month costs by the schedule if each run is as expected; None without one or without prices."""
        return self._month(self.expected)

    def _month(self, run: float | None) -> float | None:
        return self.starts.a_month * (run + self.kept) if self.starts.a_month and run is not None else None

    def as_json(self) -> dict[str, Any]:
        """As in the JSON report."""
        return {
            "worst_case_usd": _rounded(self.worst),
            "expected_usd": _rounded(self.expected),
            "runs_a_month": round(self.starts.a_month, 2),
            "worst_case_month_usd": _rounded(self.month),
            "expected_month_usd": _rounded(self.expected_month),
            "prices_estimated": self.estimated,
            "max_runtime_seconds": self.seconds,
        }


def cost_of(definition: Definition, region: str | None, starts: Starts) -> Cost:
    """What a run costs in ``region``, or in the reference region where the plan does not tell."""
    where, attempts, steps = region or REFERENCE_REGION, definition.attempts, definition.steps
    first = attempts[0]
    usd = attempt_usd(first, where, packaged=True)
    prepared = [known for step in steps if (known := attempt_usd(step, where, packaged=True)) is not None]
    unknown = len(prepared) < len(steps)
    hour = usd_per_hour(first, where, packaged=True)
    return Cost(
        worst=worst_case_usd(attempts, where, steps=steps, packaged=True),
        expected=None if usd is None or unknown else usd * (SPOT_BILLABLE[1] if first.spot else 1) + sum(prepared),
        estimated=is_estimated(attempts, where, steps=steps, packaged=True),
        seconds=sum(_seconds(each) for each in (*steps, *attempts)),
        kept=(hour or 0.0) * first.keep_alive_seconds / 3600,
        kept_seconds=max(attempt.keep_alive_seconds for attempt in attempts),
        starts=starts,
    )


def judge(before: Cost | None, after: Cost, allowed: Allowed) -> Iterator[Hit]:
    """Findings about the price, the time limits and the schedule of a job. ``before`` is None for a new one."""
    if after.worst is None:
        yield Hit("job-price-unknown", say("no price of an instance type of this job is known in its region"))
    yield from _over("job-price-high", "a run", before.worst if before else None, after.worst, allowed.usd_per_run)
    yield from _over("job-month-high", "a month", before.month if before else None, after.month, allowed.usd_per_month)
    if before is None:
        return
    factor = allowed.price_factor
    if before.worst is not None and after.worst is not None and after.worst > before.worst * factor:
        times = after.worst / before.worst if before.worst else float("inf")
        words = "worst case of a run: {} → {} USD, {} times as much; {} times is allowed"
        yield Hit("job-price-grown", say(words, f"{before.worst:.2f}", f"{after.worst:.2f}", f"{times:.1f}", factor))
    yield from longer(before.seconds, after.seconds, allowed.runtime_factor)
    yield from more_starts(before.starts, after.starts)
    if after.kept_seconds >= _KEPT_SECONDS and grown(before.kept_seconds, after.kept_seconds, allowed.runtime_factor):
        yield Hit(
            "job-pool-grown",
            say("kept after a run: {} → {}", duration(before.kept_seconds), duration(after.kept_seconds)),
        )


def _over(rule: str, what: str, before: float | None, after: float | None, allowed: float | None) -> Iterator[Hit]:
    if allowed is None or after is None or after <= allowed or (before is not None and after <= before * 1.001):
        return
    severity: Severity | None = "high" if after > allowed * _FAR else None
    words = f"{what} can cost {{}} USD, {{}} before; {{}} is allowed"
    yield Hit(rule, say(words, f"{after:,.2f}", f"{before or 0:,.2f}", f"{allowed:,.2f}"), severity)


def judge_limit(before: float | None, after: float | None, factor: float) -> Iterator[Hit]:
    """The finding about a job's own ``max_price``, in USD, that is raised by more than ``factor`` or gone."""
    if before is not None and (after is None or after > before * factor):
        severity: Severity | None = "high" if after is None or after > before * _FAR else None
        yield Hit(
            "job-limit-raised", say("max_price: {} → {} USD", before, "none" if after is None else after), severity
        )


def longer(before: int, after: int, factor: float) -> Iterator[Hit]:
    """The finding about time limits, in seconds, that grew beyond ``factor``."""
    if after > before * factor:
        words = "time limits of all attempts: {} → {}; {} times is allowed"
        yield Hit("job-runtime-grown", say(words, duration(before), duration(after), factor))


def more_starts(before: Starts, after: Starts) -> Iterator[Hit]:
    """The finding about a machine that starts more often by itself than it did."""
    if after.a_month > before.a_month * 1.001:
        words = "starts by itself: {} → {}, {} times a month"
        yield Hit("job-schedule-more", say(words, before.text or "never", after.text, f"{after.a_month:.3g}"))


def grown(before: int, after: int, factor: float) -> bool:
    """Whether a number of repeats or seconds grew by more than ``factor``, from at least one."""
    return after > max(before, 1) * factor


def _seconds(attempt: PlannedAttempt) -> int:
    limit = attempt.max_runtime_seconds
    return attempt.tuning.longest(limit) if attempt.tuning else limit


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 4)
