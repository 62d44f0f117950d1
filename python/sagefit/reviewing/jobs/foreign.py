"""State machines that train and are not Sagefit's: judged by what their definitions ask of SageMaker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.documents import UNKNOWN
from sagefit.reviewing.jobs import cost, supply
from sagefit.reviewing.jobs.asked import PROTECTIONS, Asked, asked
from sagefit.reviewing.jobs.cost import Allowed, Cost
from sagefit.reviewing.jobs.environment import environment
from sagefit.reviewing.jobs.starts import Starts
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit


def judge(
    change: Change, old: Any, new: Any, region: str | None, starts: tuple[Starts, Starts], allowed: Allowed
) -> Iterator[Hit]:
    """Findings about a change of the definition ``old`` to ``new``, of which one or both ask SageMaker for a job."""
    before = asked(old, starts[0].inputs) if change.kind != "create" else None
    if new is UNKNOWN:
        if before and before.requests:
            yield Hit("job-unreadable", say("its definition, which trains, will be known only after apply"), "high")
        return
    after = asked(new, starts[1].inputs)
    if not after.requests:
        return
    known = before if before and before.requests else None
    where = region or REFERENCE_REGION
    yield from cost.judge(_cost(known, where, starts[0]) if known else None, _cost(after, where, starts[1]), allowed)
    yield from supply.judge(known, after, supply.account_of(change))
    yield from environment(known.environment if known else {}, after.environment)
    if known:
        yield from _protections(known, after)
        yield from retries(known.retries, after.retries, allowed.runtime_factor)
        if lost := sorted(known.alternatives - after.alternatives):
            yield Hit("job-attempts-lost", say("nothing leads to {} any more", lost))
    if after.debugs > (known.debugs if known else 0):
        yield Hit("job-debug-on", say("EnableRemoteDebug: true"))


def retries(before: int, after: int, factor: float) -> Iterator[Hit]:
    """The finding about more repeats of a job that failed, each of which is paid for."""
    if cost.grown(before, after, factor):
        yield Hit("job-retries-grown", say("repeats after a failure: {} → {}", before, after))


def _cost(of: Asked, region: str, starts: Starts) -> Cost:
    usd = of.usd(region)
    return Cost(usd, usd, False, of.seconds, kept_seconds=of.kept_seconds, starts=starts)


def _protections(before: Asked, after: Asked) -> Iterator[Hit]:
    """Protections that fewer places ask for, though no request and no row of data went, or that more refuse."""
    gone = max(0, before.requests - after.requests) + max(0, len(before.units) - len(after.units))
    for name, (rule, _) in PROTECTIONS.items():
        if before.on[name] - after.on[name] > gone or (before.on[name] and after.off[name] > before.off[name]):
            words = "{}: asked for in {} places, {} before"
            yield Hit(rule, say(words, name, after.on[name], before.on[name]))
