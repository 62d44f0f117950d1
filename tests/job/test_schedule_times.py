"""When a schedule is due: what the EventBridge Scheduler guide says of rates, fields, zones and changed clocks."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest

from sagefit.job.schedule_times import Cron, is_due
from sagefit_cloud.schedules import Clock

UTC = timezone.utc
NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)  # a Monday
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("0 0 * * ? *", list(range(1, 31))),
        ("0 0 1,15 * ? *", [1, 15]),
        ("0 0 1-3 * ? *", [1, 2, 3]),
        ("0 0 10/10 * ? *", [10, 20, 30]),
        ("0 0 L * ? *", [30]),
        ("0 0 1W * ? *", [2]),  # the first is a Sunday, and October is another month
        ("0 0 14W * ? *", [13]),  # a Saturday
        ("0 0 LW * ? *", [30]),
        ("0 0 ? * MON *", [2, 9, 16, 23, 30]),
        ("0 0 ? * 2 *", [2, 9, 16, 23, 30]),
        ("0 0 ? * MON-WED *", [2, 3, 4, 9, 10, 11, 16, 17, 18, 23, 24, 25, 30]),
        ("0 0 ? * SUN,SAT *", [1, 7, 8, 14, 15, 21, 22, 28, 29]),
        ("0 0 ? * L *", [7, 14, 21, 28]),
        ("0 0 ? * 6#3 *", [20]),
        ("0 0 ? * 3#1 *", [3]),
        ("0 0 ? * 6L *", [27]),
        ("0 0 ? * fril *", [27]),
        ("0 0 ? NOV MON#1 2026", [2]),
        ("0 0 * 12 ? *", []),
        ("0 0 * * ? 2027-2030", []),
    ],
)
def test_days_of_a_month(expression: str, days: list[int]) -> None:
    cron = Cron.parse(expression)
    assert [day for day in range(1, 31) if cron.matches(datetime(2026, 11, day))] == days


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("15 10 * * ? *", ["10:15"]),
        ("0/30 8-9 ? * MON-FRI *", ["08:00", "08:30", "09:00", "09:30"]),
        ("*/20 23 * * ? *", ["23:00", "23:20", "23:40"]),
        ("5,35 0 ? * 2 *", ["00:05", "00:35"]),
    ],
)
def test_times_of_a_day(expression: str, times: list[str]) -> None:
    cron = Cron.parse(expression)
    day = [datetime(2026, 11, 2) + minute * MINUTE for minute in range(24 * 60)]
    assert [at.strftime("%H:%M") for at in day if cron.matches(at)] == times


@pytest.mark.parametrize(
    "wrong", ["60 * * * ? *", "0 24 * * ? *", "0 0 0 * ? *", "0 0 ? * 8 *", "0 0 * *", "a * * * ? *"]
)
def test_what_is_no_expression_is_an_error(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        Cron.parse(wrong)


def test_a_rate_has_its_first_time_at_once_and_then_each_interval() -> None:
    def due(since: datetime, until: datetime) -> bool:
        return is_due("rate(12 hours)", "UTC", NOW, since, until)

    assert due(NOW - MINUTE, NOW)
    assert not due(NOW, NOW + HOUR)
    assert due(NOW + 11 * HOUR, NOW + 12 * HOUR)
    assert not due(NOW - DAY, NOW - HOUR)
    assert is_due("rate(1 minute)", "UTC", NOW, NOW, NOW + DAY)


def test_one_time_is_of_the_zone() -> None:
    at = "at(2026-11-02T13:30:00)"
    assert is_due(at, "Europe/Berlin", NOW, NOW + 29 * MINUTE, NOW + 30 * MINUTE)
    assert not is_due(at, "UTC", NOW, NOW + 29 * MINUTE, NOW + 30 * MINUTE)
    assert not is_due(at, "Europe/Berlin", NOW, NOW + 30 * MINUTE, NOW + DAY)


def test_cron_is_of_the_zone_and_of_what_was_not_looked_at() -> None:
    six = "cron(0 6 ? * MON *)"
    assert is_due(six, "America/New_York", NOW - DAY, NOW - 90 * MINUTE, NOW - HOUR)  # 11:00 UTC
    assert not is_due(six, "Europe/Berlin", NOW - DAY, NOW - 90 * MINUTE, NOW - HOUR)
    assert is_due(six, "America/New_York", NOW - DAY, NOW - 20 * HOUR, NOW)
    assert not is_due(six, "America/New_York", NOW, NOW - 20 * HOUR, NOW)  # it was made later


def test_where_a_clock_is_changed_there_is_one_time_or_none() -> None:
    berlin = "Europe/Berlin"
    for day, times in {"2026-03-29": 0, "2026-10-25": 1, "2026-07-01": 1}.items():
        night = datetime.fromisoformat(f"{day}T00:00:00+00:00") - 2 * HOUR
        hours = [night + minute * MINUTE for minute in range(6 * 60)]
        due = [at for at in hours if is_due("cron(30 2 * * ? *)", berlin, night, at - MINUTE, at)]
        assert len(due) == times, day


def test_what_is_neither_is_an_error() -> None:
    with pytest.raises(ValueError, match="neither rate, cron nor at"):
        is_due("every day", "UTC", NOW, NOW, NOW)


def test_a_clock_runs_as_fast_as_it_is_told() -> None:
    ten_seconds_ago = time.time() - 10
    passed = Clock(3600.0, ten_seconds_ago).now() - datetime.fromtimestamp(ten_seconds_ago, UTC)
    assert passed >= 10 * HOUR
