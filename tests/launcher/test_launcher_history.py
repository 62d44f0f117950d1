"""Memory over the whole run in few points: the highest of each stretch survives, however long the run is."""

from __future__ import annotations

import pytest

from sagefit_launcher.history import MOST, History


@pytest.mark.parametrize("seconds", [1, 30, MOST, MOST + 1, 1000, 86_400 * 5])
def test_there_are_never_more_points_than_fit_and_the_peak_is_kept(seconds: int) -> None:
    history = History()
    peak = seconds * 2 // 3
    for at in range(0, seconds, max(1, seconds // 5000)):
        history.add(at, 900 if at <= peak < at + max(1, seconds // 5000) else 100 + at % 7, None)
    found = history.as_json()
    series = found["host_bytes"]
    assert len(series) <= MOST
    assert found["every_seconds"] * len(series) >= seconds - max(1, seconds // 5000)
    assert found["every_seconds"] * (len(series) - 1) <= seconds
    assert max(series) == 900
    assert series.index(900) == int(peak / found["every_seconds"])
    assert found["gpu_bytes"] is None


def test_the_fullest_gpu_has_a_series_of_its_own() -> None:
    history = History()
    for at in range(4):
        history.add(at, 10, 1 + at)
    assert history.as_json() == {"every_seconds": 1.0, "host_bytes": [10] * 4, "gpu_bytes": [1, 2, 3, 4]}


def test_a_pause_without_samples_is_like_what_was_before() -> None:
    history = History()
    for at in (0, 1, 5):
        history.add(at, 10 + at, None)
    assert history.as_json()["host_bytes"] == [10, 11, 11, 11, 11, 15]


def test_a_clock_that_stands_still_does_no_harm() -> None:
    history = History()
    for value in (5, 9, 7):
        history.add(0.0, value, None)
    assert history.as_json()["host_bytes"] == [9]
