"""What one run can cost at worst.

The worst case assumes that AWS itself does not fail. It includes the processing steps and the most expensive path of
attempts; every step and attempt runs to its time limit, and then until SageMaker kills it (`STOP_SECONDS`).
A training job that ends with an internal error of AWS is repeated, at most twice for each attempt. The worst case does
not include these repeats: with them, it would be three times the cost of even a bad run. Such errors are rare and
mostly come before training starts, and a repeat continues from the checkpoint, so its time is not paid for again. With
repeats included, a ``max_price`` would have to be three times too high, and would then accept a plan three times as
expensive. Without any mention of repeats, the number would promise too much. So both are shown: see `repeats_note`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sagefit.catalog import price
from sagefit.catalog.hardware import hourly_price
from sagefit.planning.planned import PlannedAttempt

REPEATS = 2
"""How often an attempt is repeated after AWS lost its training job, as modules/training-job writes it."""


def usd_per_hour(attempt: PlannedAttempt, region: str, *, packaged: bool = False) -> float | None:
    """What an hour on demand costs, all instances of ``attempt`` together; None when a price is not known."""
    known = hourly_price(attempt.instances, region, packaged=packaged)
    return known.usd_per_hour if known else None


def attempt_usd(attempt: PlannedAttempt, region: str, *, packaged: bool = False) -> float | None:
    """What ``attempt`` costs when it is stopped at its limit; None without a price. A search costs all of its trials.

    Spot counts in full: its saving comes as fewer billed seconds and is not promised. ``packaged`` leaves refreshed
    prices aside, as everywhere in this file: for what has to come out the same on every machine.
    """
    usd = usd_per_hour(attempt, region, packaged=packaged)
    return None if usd is None else usd * attempt.paid_seconds / 3600


def worst_path(
    attempts: Sequence[PlannedAttempt], region: str, *, packaged: bool = False
) -> list[PlannedAttempt] | None:
    """The attempts of the most expensive run, in order; None when a run may reach one whose price is not known.

    A run starts with the first attempt and follows ``next``, which leads forward only: it walks one path of the
    graph, so what it costs is bounded by the dearest path and not by the sum of all attempts.
    """
    reached = reachable(attempts)
    usd = {attempt.name: attempt_usd(attempt, region, packaged=packaged) for attempt in reached}
    worst: dict[str, tuple[float, list[PlannedAttempt]]] = {}
    for attempt in reversed(reached):
        own = usd[attempt.name]
        if own is None:
            return None
        after = [worst[name] for name in dict.fromkeys(attempt.next.values())]
        rest_usd, rest = max(after, key=lambda path: path[0], default=(0.0, []))
        worst[attempt.name] = (own + rest_usd, [attempt, *rest])
    return worst[attempts[0].name][1]


def worst_case_usd(
    attempts: Sequence[PlannedAttempt], region: str, *, steps: Sequence[PlannedAttempt] = (), packaged: bool = False
) -> float | None:
    """What one run costs when all processing ``steps`` and every attempt of its dearest path run to their limits.

    None when a price is not known. Without repeats after errors of AWS; see `repeats_note`.
    """
    path = worst_path(attempts, region, packaged=packaged)
    known = [attempt_usd(each, region, packaged=packaged) for each in (*steps, *(path or ()))]
    return None if path is None or None in known else sum(usd or 0.0 for usd in known)


def repeats_note(worst_usd: float) -> str:
    """What repeats can add to a worst case of that many USD, if AWS loses each attempt at its time limit every time.

    >>> repeats_note(1.5)
    'repeats after internal errors of AWS could add at most 3.00 USD'
    """
    return f"repeats after internal errors of AWS could add at most {REPEATS * worst_usd:.2f} USD"


def is_estimated(
    attempts: Sequence[PlannedAttempt], region: str, *, steps: Sequence[PlannedAttempt] = (), packaged: bool = False
) -> bool:
    """Whether the worst case uses an estimated price that nobody has published."""
    types = {each.instance_type for attempt in (*steps, *reachable(attempts)) for each in attempt.instances}
    known = [price(ml_type, region, packaged=packaged) for ml_type in types]
    return any(found is not None and found.estimated for found in known)


def reachable(attempts: Sequence[PlannedAttempt]) -> list[PlannedAttempt]:
    """The attempts that a run can come to, in order."""
    names = {attempts[0].name}
    for attempt in attempts:
        if attempt.name in names:
            names |= set(attempt.next.values())
    return [attempt for attempt in attempts if attempt.name in names]
