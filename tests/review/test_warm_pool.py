"""The page says of each attempt whether it will find kept instances, as the plan does."""

from __future__ import annotations

from typing import Any

from review.plans import reviewed
from review.test_jobs import definition, machine
from sagefit.reviewing import markdown

MISSES = "misses the pool small: VolumeSizeInGB is 60, the pool has 30"


def page(after: Any) -> str:
    output = {"actions": ["create"], "before": None, "after": after, "after_unknown": False}
    return markdown(reviewed(machine(None, definition()), output_changes={"warm_pool": output}))


def test_each_attempt_of_the_job_has_a_line() -> None:
    text = page({"main": "hits the pool small", "larger": MISSES, "other": "is no attempt of this job"})
    assert "- `main`: `hits the pool small`" in text
    assert f"- `larger`: `{MISSES}`" in text
    assert "is no attempt" not in text.split("Warm pool:")[1].split("\n\n")[1]


def test_nothing_is_said_where_nothing_is_kept() -> None:
    assert "Warm pool:" not in page(None)
    assert "Warm pool:" not in markdown(reviewed(machine(None, definition())))
