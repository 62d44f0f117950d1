"""When a schedule of EventBridge Scheduler is due: ``rate(...)``, ``cron(...)`` and ``at(...)``.

AWS's cron has six fields, its own numbers of weekdays, and ``L``, ``W`` and ``#``, which no library of this size reads.
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

import calendar
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_MINUTE = timedelta(minutes=1)
_MONTH = timedelta(days=365.25 / 12)
_LEAP_CYCLE = [date(2024, 1, 1) + timedelta(days) for days in range(4 * 365 + 1)]
_MONTHS = {"JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6}
_MONTHS |= {"JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11, "DEC": 12}
_DAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}
_SATURDAY = 7


def is_due(expression: str, zone: str, began: datetime, since: datetime, until: datetime) -> bool:
    """Whether a schedule has a time after ``since`` and up to ``until``.

    ``began`` is when the schedule was made or changed, or its start date: a rate has its first time then. All are aware
    of their time zone. Raises ValueError for an expression that cannot be read.
    """
    kind, _, text = expression.strip().rstrip(")").partition("(")
    if kind == "at":
        at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
        return since < at <= until
    if kind == "rate":
        count, unit = text.split()
        every = int(count) * _UNITS[unit.rstrip("s")]
        if until < began:
            return False
        last = began + (until - began) // every * every
        return since < last <= until
    if kind == "cron":
        cron, local = Cron.parse(text), ZoneInfo(zone)
        at = since.astimezone(timezone.utc).replace(second=0, microsecond=0) + _MINUTE
        while at <= until:
            if at >= began and cron.matches(at.astimezone(local)):
                return True
            at += _MINUTE
        return False
    raise ValueError(f"{expression} is neither rate, cron nor at")


def times_a_month(expression: str) -> float | None:
    """How many times a schedule has in a month, as a mean over four years; None for what cannot be read.

    ``at(...)`` has one time in all and counts as 1.

    >>> times_a_month("rate(1 day)"), times_a_month("cron(0 3 1 * ? *)")
    (30.4375, 1.0)
    """
    kind, _, text = expression.strip().rstrip(")").partition("(")
    try:
        if kind == "rate":
            count, unit = text.split()
            return _MONTH / (int(count) * _UNITS[unit.rstrip("s")])
        if kind == "cron":
            return Cron.parse(text).times_a_month()
    except (ArithmeticError, KeyError, ValueError):
        return None
    return 1.0 if kind == "at" else None


def shortest_gap(expression: str) -> int | None:
    """Seconds between those two starts of a schedule that are closest; None for a single start, or what cannot be read.

    Clocks that are put forward or back are left aside.

    >>> shortest_gap("rate(12 hours)"), shortest_gap("cron(0 3,5 ? * MON *)"), shortest_gap("at(2026-12-01T03:00:00)")
    (43200, 7200, None)
    """
    kind, _, text = expression.strip().rstrip(")").partition("(")
    try:
        if kind == "rate":
            count, unit = text.split()
            return round((int(count) * _UNITS[unit.rstrip("s")]).total_seconds())
        return Cron.parse(text).shortest_gap() if kind == "cron" else None
    except (ArithmeticError, KeyError, ValueError):
        return None


@dataclass(frozen=True)
class Cron:
    """The six fields of an expression."""

    minutes: frozenset[int]
    hours: frozenset[int]
    is_day: Callable[[date], bool]
    months: frozenset[int]
    is_weekday: Callable[[date], bool]
    years: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Read ``minutes hours day-of-month month day-of-week year``. Raises ValueError."""
        minutes, hours, day, months, weekday, years = text.upper().split()
        return cls(
            _numbers(minutes, range(60)),
            _numbers(hours, range(24)),
            _day(day),
            _numbers(months, range(1, 13), _MONTHS),
            _weekday(weekday),
            _numbers(years, range(1970, 2200)),
        )

    def times_a_month(self) -> float:
        """How many times it has in a month, as a mean over four years; its own years are left aside."""
        days = sum(self._is_on(day) for day in _LEAP_CYCLE)
        return len(self.minutes) * len(self.hours) * days / 48

    def shortest_gap(self) -> int | None:
        """Seconds between the two closest of its times, within four years; None where it has one time at most."""
        times = sorted(3600 * hour + 60 * minute for hour in self.hours for minute in self.minutes)
        days = [day.toordinal() for day in _LEAP_CYCLE if self._is_on(day)]
        within = [later - sooner for sooner, later in itertools.pairwise(times)] if days else []
        between = [86400 * (later - sooner) + times[0] - times[-1] for sooner, later in itertools.pairwise(days)]
        return min([*within, *between], default=None)

    def _is_on(self, day: date) -> bool:
        return day.month in self.months and self.is_day(day) and self.is_weekday(day)

    def matches(self, at: datetime) -> bool:
        """Whether a minute of local time is one of its times. Where a clock is put back, the second pass is none."""
        return (
            not at.fold
            and at.minute in self.minutes
            and at.hour in self.hours
            and at.year in self.years
            and self._is_on(at.date())
        )


def _numbers(field: str, allowed: range, names: dict[str, int] | None = None) -> frozenset[int]:
    """``*``, ``5``, ``1-5``, ``*/15``, ``10/5``, and lists of them."""
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        if span == "*":
            first, last = allowed[0], allowed[-1]
        else:
            begin, dash, end = span.partition("-")
            first = _number(begin, names)
            last = _number(end, names) if dash else allowed[-1] if slash else first
        if first not in allowed or last not in allowed:
            raise ValueError(f"{part} is not within {allowed[0]} to {allowed[-1]}")
        found.update(range(first, last + 1, int(step) if slash else 1))
    return frozenset(found)


def _number(text: str, names: dict[str, int] | None) -> int:
    return (names or {}).get(text) or int(text)


def _day(field: str) -> Callable[[date], bool]:
    if field == "?":
        return lambda _: True
    if field == "L":
        return lambda day: day.day == _last(day)
    if found := re.fullmatch(r"(\d+|L)W", field):
        number = 31 if found[1] == "L" else int(found[1])
        return lambda day: day == _working_day(day, number)
    days = _numbers(field, range(1, 32))
    return lambda day: day.day in days


def _weekday(field: str) -> Callable[[date], bool]:
    if field == "?":
        return lambda _: True
    if field == "L":
        return lambda day: _number_of(day) == _SATURDAY
    if found := re.fullmatch(r"(\w+)#([1-5])", field):
        number, week = _number(found[1], _DAYS), int(found[2])
        return lambda day: _number_of(day) == number and (day.day - 1) // 7 + 1 == week
    if found := re.fullmatch(r"(\w+)L", field):
        last = _number(found[1], _DAYS)
        return lambda day: _number_of(day) == last and day.day + 7 > _last(day)
    days = _numbers(field, range(1, 8), _DAYS)
    return lambda day: _number_of(day) in days


def _number_of(day: date) -> int:
    """The weekday as EventBridge counts: 1 is Sunday."""
    return day.isoweekday() % 7 + 1


def _last(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _working_day(month: date, number: int) -> date:
    """The day from Monday to Friday that is nearest to a day of a month, in this month."""
    last = _last(month)
    day = month.replace(day=min(number, last))
    if day.isoweekday() == 6:
        return day - timedelta(1) if day.day > 1 else day + timedelta(2)
    if day.isoweekday() == 7:
        return day + timedelta(1) if day.day < last else day - timedelta(2)
    return day
