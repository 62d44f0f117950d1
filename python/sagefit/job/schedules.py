"""When a job starts by itself, in the words of EventBridge Scheduler (guide, Schedule types)."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from sagefit.job.key import Key
from sagefit.job.limits import limits, most
from sagefit.job.problem import Problem
from sagefit.job.values import durations_meant
from sagefit.nearest import nearest

if TYPE_CHECKING:
    from sagefit.job.model import Job

_UNITS = {"d": "day", "h": "hour", "m": "minute"}
_NICKNAMES = {
    "hourly": "rate(1 hour)",
    "daily": "rate(1 day)",
    "midnight": "cron(0 0 * * ? *)",
    "nightly": "cron(0 3 * * ? *)",
    "weekly": "rate(7 days)",
    "monthly": "cron(0 0 1 * ? *)",
    "yearly": "cron(0 0 1 1 ? *)",
    "annually": "cron(0 0 1 1 ? *)",
}


def schedule_problems(job: Job) -> Iterator[Problem]:
    """What is wrong with the schedule's expression and its time zone."""
    if job.schedule is None:
        return
    mapping = not isinstance(job.schedule, str)
    expression = job.schedule if isinstance(job.schedule, str) else job.schedule.expression
    field: Key = ("schedule", "expression") if mapping else ("schedule",)
    row = limits()["schedule.expression"]
    if not re.fullmatch(row.pattern or "", expression):
        message = f"'{expression}' is not {row.words}"
        yield Problem(field, message, _knob(expression) or f"write for example {row.words}")
    elif len(expression) > most("schedule.expression"):
        message = f"has {len(expression)} characters; EventBridge Scheduler takes {most('schedule.expression')} (API)"
        yield Problem(field, message, "shorten it: 0/5 is every fifth, 8-18 is a range")
    if not isinstance(job.schedule, str):
        zone, known = job.schedule.timezone, _zones()
        if known and zone not in known:
            ends = [name for name in known if name.rpartition("/")[2].casefold() == zone.casefold()]
            near = ends or nearest(zone, known)
            knob = f"did you mean {near[0]}?" if near else "write one such as Europe/Berlin or UTC"
            yield Problem(("schedule", "timezone"), f"'{zone}' is no time zone (IANA: Area/City)", knob)


@cache
def _zones() -> tuple[str, ...]:
    """The names of time zones; none on a machine that has no list of them."""
    return tuple(sorted(zoneinfo.available_timezones()))


def _knob(expression: str) -> str | None:
    """What may have been meant: the same in EventBridge's words."""
    inner = re.fullmatch(r"(rate|cron)?\(?([^()]*)\)?", expression.strip())
    if inner is None:
        return None
    words = inner[2].split()
    if len(words) in (5, 6) and inner[1] != "rate":
        return _cron(words)
    if name := _NICKNAMES.get(inner[2].strip("@ ").casefold()):
        return f"did you mean {name}?"
    for duration in durations_meant(inner[2].removeprefix("every ").replace("every", "")) or _alone(inner[2]):
        if unit := re.fullmatch(r"(\d+)([dhm])", duration):
            one = "" if unit[1] == "1" else "s"
            return f"did you mean rate({unit[1]} {_UNITS[unit[2]]}{one})?"
    if inner[1] == "rate":
        return "a rate is a whole number and minutes, hours or days, such as rate(12 hours)"
    return None


def _alone(text: str) -> list[str]:
    """``day`` and ``every hour``: one of the unit."""
    unit = re.fullmatch(r"(?:every )?(day|hour|minute)", text.strip())
    return [f"1{unit[1][0]}"] if unit else []


def _cron(words: list[str]) -> str:
    """A crontab's five fields, or six without a ``?``, as EventBridge has them."""
    minute, hour, day, month, weekday = words[:5]
    year = words[5] if len(words) > len("mhdMw") else "*"
    if "?" not in (day, weekday):
        day, weekday = (day, "?") if weekday == "*" else ("?", weekday)
    return (
        "EventBridge's cron has six fields, minutes hours day month weekday year, and of day and weekday one is ?: "
        f"did you mean cron({minute} {hour} {day} {month} {weekday} {year})?"
    )
