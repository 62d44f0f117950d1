"""A schedule that starts runs faster than they may end is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_files import VALID, write_job
from sagefit.job import load_job
from sagefit.job.schedule_times import shortest_gap
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.remarks import plan_remarks

HOUR, DAY = 3600, 86400
ONE = [{"name": "a", "instance_type": "ml.m5.large"}]
TWO = [
    {"name": "a", "instance_type": "ml.m5.large", "next": {"host_memory": "b"}},
    {"name": "b", "instance_type": "ml.m5.xlarge"},
]
FORK = [
    {"name": "a", "instance_type": "ml.m5.large", "next": {"host_memory": "b", "capacity": "c"}},
    {"name": "b", "instance_type": "ml.m5.xlarge", "max_runtime": "5h", "next": {}},
    {"name": "c", "instance_type": "ml.m5.xlarge", "max_runtime": "3h"},
]
STEP = {
    "name": "prepare",
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "outputs": ["train"],
    "resources": {"instance_type": "ml.m5.large", "max_runtime": "5h"},
}


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("rate(30 minutes)", 1800),
        ("rate(7 days)", 7 * DAY),
        ("cron(0 3 * * ? *)", DAY),
        ("cron(0/15 * * * ? *)", 900),
        ("cron(0 23,1 * * ? *)", 2 * HOUR),  # over midnight
        ("cron(0 3 ? * MON,TUE *)", DAY),
        ("cron(0 3 ? * MON#1 *)", 28 * DAY),
        ("cron(0 3 1 * ? *)", 28 * DAY),
        ("cron(0 0 29 2 ? *)", None),
        ("cron(0 0 31 2 ? *)", None),
        ("cron(0,30 3 31 2 ? *)", None),
        ("at(2026-12-01T03:00:00)", None),
        ("rate(soon)", None),
        ("cron(99 3 * * ? *)", None),
    ],
)
def test_the_closest_two_starts_of_a_schedule(expression: str, seconds: int | None) -> None:
    assert shortest_gap(expression) == seconds


@pytest.mark.parametrize(
    ("schedule", "attempts", "more", "longest"),
    [
        ("rate(4 hours)", ONE, {}, None),  # just in time
        ("rate(3 hours)", ONE, {}, "4h"),
        ("rate(8 hours)", TWO, {}, None),
        ("rate(7 hours)", TWO, {}, "8h"),
        ("rate(8 hours)", FORK, {}, "9h"),  # one path, and the slower one
        ("rate(9 hours)", FORK, {}, None),
        ("rate(8 hours)", ONE, {"processing": [STEP]}, "9h"),
        ("rate(5 hours)", ONE, {"resources.spot": True, "resources.max_wait": "6h"}, "6h"),
        ({"expression": "cron(0 3,5 * * ? *)", "timezone": "Europe/Berlin"}, ONE, {}, "4h"),
        ("at(2199-12-01T03:00:00)", ONE, {}, None),
        (None, ONE, {}, None),
    ],
)
def test_a_run_that_may_meet_the_next_is_named(
    tmp_path: Path, schedule: Any, attempts: list[dict[str, Any]], more: dict[str, Any], longest: str | None
) -> None:
    kept = {name: VALID[name] for name in ("name", "platform", "code", "image")}
    job = {**kept, "resources": {"max_runtime": "4h"}, "attempts": attempts}
    path = write_job(tmp_path, {"schedule": schedule, **more}, job=job)
    loaded = load_job(str(path))
    found = [each for each in loaded.told(plan_remarks(JobPlan(loaded))) if "starts a run every" in each]
    assert len(found) == (longest is not None)
    if longest:
        assert f"a run may take {longest}:" in found[0].replace(" h", "h")
        assert f":{loaded.line(('schedule',))}: schedule: " in found[0]
