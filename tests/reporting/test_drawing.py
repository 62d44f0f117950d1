"""Pictures are to scale, stay within their frame, and leave nothing out."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporting.stories import BEGAN, CURVE, attempt, step, story
from sagefit.explaining import Timeline
from sagefit.failures import CLASSES
from sagefit.reporting import drawing
from sagefit.reporting.drawing import LEFT, RIGHT, WIDTH, Bars, course, kind, legend, memory, spending

SCALE = WIDTH - RIGHT - LEFT


def within(drawn: Bars) -> None:
    for row in drawn.rows:
        assert all(part.x >= LEFT and part.x + part.width <= WIDTH for part in row.parts)
        assert 0 <= row.y < drawn.height
    assert all(LEFT <= tick.at <= WIDTH for tick in drawn.ticks)
    assert len(drawn.ticks) <= drawing.MOST_TICKS + 1


def test_a_bar_is_as_long_as_it_took() -> None:
    """100 s: created at 10 s, its script from 20 to 90 s, of which the last 30 are lost."""
    failed = attempt(outcome="gpu_memory", begin=10, seconds=80, start_seconds=10.0, lost_seconds=30.0)
    drawn = course(story(failed, attempt(1, begin=90, seconds=8)))
    assert drawn
    parts = [
        (part.kind, round((part.x - LEFT) / SCALE * 100), round(part.width / SCALE * 100))
        for part in drawn.rows[0].parts
    ]
    assert parts == [("waiting", 10, 10), ("memory", 20, 40), ("memory lost", 60, 30)]
    assert [row.name for row in drawn.rows] == ["0 try-0", "1 try-1"]
    assert drawn.rows[0].words == "gpu_memory, 0.0313 USD"
    assert [tick.words for tick in drawn.ticks][:3] == ["0", "15 s", "30 s"]
    within(drawn)


def test_what_runs_reaches_to_now() -> None:
    going = attempt(outcome="", status="Training", ended=None, begin=100, start_seconds=100.0, usd=None)
    drawn = course(story(going, status="RUNNING", read=BEGAN + timedelta(seconds=400)))
    assert drawn
    assert [part.kind for part in drawn.rows[0].parts] == ["waiting", "running"]
    last = drawn.rows[0].parts[-1]
    assert last.x + last.width == pytest.approx(WIDTH - RIGHT, abs=0.2)
    assert drawn.rows[0].words == "Training"


def test_an_attempt_that_waits_for_an_instance_is_all_waiting() -> None:
    waits = attempt(outcome="", status="Starting", ended=None, start_seconds=None)
    drawn = course(story(waits, status="RUNNING"))
    assert drawn
    assert [part.kind for part in drawn.rows[0].parts] == ["waiting"]


def test_a_refused_attempt_has_words_and_no_bar() -> None:
    refused = attempt(outcome="quota", created=None, ended=None, training_job="", billable_seconds=None, usd=None)
    drawn = course(story(refused, attempt(1)))
    assert drawn
    assert (drawn.rows[0].parts, drawn.rows[0].words) == ((), "quota: refused, so nothing ran")


def test_steps_come_first() -> None:
    drawn = course(story(step(), attempt()))
    assert drawn
    assert [row.name for row in drawn.rows] == ["p0 prepare-0", "0 try-0"]


def test_nothing_begun_is_no_picture() -> None:
    assert course(story(status="RUNNING")) is None
    assert spending([story(status="RUNNING")]) is None


@pytest.mark.parametrize("outcome", ["completed", "", *CLASSES])
def test_each_outcome_has_a_colour_and_the_legend_says_it(outcome: str) -> None:
    drawn = course(story(attempt(outcome=outcome)))
    assert drawn
    assert (kind(outcome), drawing.MEANINGS[kind(outcome)]) in legend(drawn)


def test_money_is_to_scale() -> None:
    cheap = story(attempt(usd=1.0), name="job-261121-120000")
    dear = story(attempt(outcome="host_memory", usd=1.0), attempt(1, usd=3.0), name="job-261121-130000")
    drawn = spending([dear, cheap])
    assert drawn
    assert [[(part.kind, round(part.width / SCALE, 3)) for part in row.parts] for row in drawn.rows] == [
        [("memory", 0.25), ("good", 0.75)],
        [("good", 0.25)],
    ]
    assert [row.words for row in drawn.rows] == ["succeeded, 4.0000 USD", "succeeded, 1.0000 USD"]
    within(drawn)


def test_estimated_money_says_so_and_time_stands_in_for_a_price_that_is_not_known() -> None:
    estimated = spending([story(attempt(usd=None, estimated_usd=2.0))])
    assert estimated
    assert estimated.rows[0].words == "succeeded, ~2.0000 USD"
    unknown = spending([story(attempt(usd=None, seconds=120)), story(attempt(usd=2.0))])
    assert unknown
    assert (unknown.rows[0].words, unknown.words[:11]) == ("succeeded, 2 min", "billed time")


def test_a_curve_is_to_scale() -> None:
    drawn = memory(CURVE, attempt(predicted_gpu_gib=20.0))
    height = drawn.bottom - drawing.CURVE_TOP
    steps = [float(value) for value in re.findall(r"V([\d.]+)", drawn.line)]
    levels = {level.kind: level.y for level in drawn.levels}
    assert [round((drawn.bottom - y) / height * 22 * 1.04, 1) for y in steps] == [2.0, 14.5, 21.9]
    assert round((drawn.bottom - levels["limit"]) / height * 22 * 1.04) == 22
    assert round((drawn.bottom - levels["predicted"]) / height * 22 * 1.04) == 20
    assert drawn.title == "GPU memory of algo-1 over 30 s: up to 21.90 of 22.00 GiB"
    assert drawn.saved
    assert drawn.saved.words == "last checkpoint, at 12 s"
    wide = WIDTH - RIGHT - drawing.CURVE_LEFT
    assert (drawn.saved.at - drawing.CURVE_LEFT) / wide == pytest.approx(12 / 30, abs=0.001)


def test_the_prediction_is_that_of_what_is_drawn() -> None:
    both = attempt(predicted_gpu_gib=20.0, predicted_host_gib=3.0)
    host = replace(CURVE, gpu=False, gib=(1.0, 2.0), limit_gib=4.0)
    assert [level.words for level in memory(host, both).levels] == ["limit 4.00 GiB", "predicted 3.00 GiB"]
    assert [level.words for level in memory(CURVE, both).levels] == ["limit 22.00 GiB", "predicted 20.00 GiB"]


def test_a_prediction_far_off_does_not_flatten_the_rest() -> None:
    drawn = memory(CURVE, attempt(predicted_gpu_gib=300.0))
    assert [level.kind for level in drawn.levels] == ["limit"]


_SECONDS = st.floats(0.1, 1e6)


@given(
    begin=_SECONDS,
    seconds=_SECONDS,
    waited=st.none() | _SECONDS,
    lost=st.none() | _SECONDS,
    outcome=st.sampled_from(["completed", "", "host_memory", "spot", "code"]),
    going=st.booleans(),
)
def test_bars_never_leave_the_picture(
    begin: float, seconds: float, waited: float | None, lost: float | None, outcome: str, going: bool
) -> None:
    own: dict[str, Any] = {"start_seconds": waited, "lost_seconds": lost}
    end = BEGAN + timedelta(seconds=begin + seconds)
    job = attempt(outcome=outcome, begin=begin, seconds=seconds, **own | ({"ended": None} if going else {}))
    drawn = course(story(job, status="RUNNING" if going else "FAILED", read=end))
    assert drawn
    within(drawn)


@given(
    gib=st.lists(st.floats(0.001, 2000), min_size=1, max_size=120),
    every=st.floats(0.5, 5000),
    limit=st.none() | st.floats(0.1, 2000),
    saved=st.none() | st.floats(0, 1e7),
    predicted=st.none() | st.floats(0.001, 3000),
)
def test_curves_never_leave_the_picture(
    gib: list[float], every: float, limit: float | None, saved: float | None, predicted: float | None
) -> None:
    line = Timeline("host memory", "algo-1", every, tuple(gib), limit, saved)
    drawn = memory(line, attempt(predicted_host_gib=predicted))
    xs = [float(value) for value in re.findall(r"H([\d.]+)", drawn.line)]
    ys = [float(value) for value in re.findall(r"V([\d.]+)", drawn.line)]
    assert xs == sorted(xs)
    assert xs[-1] == WIDTH - RIGHT
    assert all(drawing.CURVE_TOP <= y <= drawn.bottom for y in [*ys, *(level.y for level in drawn.levels)])
    assert all(drawing.CURVE_TOP <= tick.at <= drawn.bottom for tick in drawn.rows)
    assert 2 <= len(drawn.rows) <= 6
    assert drawn.saved is None or drawing.CURVE_LEFT <= drawn.saved.at <= WIDTH - RIGHT
