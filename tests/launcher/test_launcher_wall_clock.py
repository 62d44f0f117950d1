"""When a file was written, on a host whose clock is set meanwhile. A real clock is the whole machine's: it stays."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sagefit_launcher import growth, saves
from sagefit_launcher.wall_clock import WallClock

HOUR, GIB = 3600.0, 1024**3


class Times:
    """Both clocks of a host."""

    def __init__(self) -> None:
        self.passing, self.day = 1000.0, 1_800_000_000.0

    def go(self, seconds: float, set_by: float = 0.0) -> None:
        """Let time pass, then set the clock."""
        self.passing += seconds
        self.day += seconds + set_by


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    found = Times()
    monkeypatch.setattr(time, "monotonic", lambda: found.passing)
    monkeypatch.setattr(time, "time", lambda: found.day)
    return found


@pytest.mark.parametrize("by", [HOUR, -HOUR, 2.0, -2.0, 0.0])
def test_a_file_is_as_old_as_it_is(times: Times, by: float) -> None:
    clock, written = WallClock(), []
    for set_by in (0.0, by, 0.0, 0.0):
        times.go(10, set_by)
        clock.look()
        times.go(5)
        clock.look()
        written.append((times.day, times.passing))
        assert [clock.passed(day) for day, _ in written] == pytest.approx([passing for _, passing in written])


def test_what_was_there_before_stays_before(times: Times) -> None:
    clock, before = WallClock(), times.day - 300
    for by in (0.0, HOUR, -2 * HOUR):
        times.go(10, by)
        clock.look()
        assert clock.passed(before) < 1000


def test_a_process_that_has_to_wait_between_two_readings_sees_no_clock_set(
    times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, waits = WallClock(), [1.5, 3.0, 0.0, 0.0]

    def day() -> float:
        times.go(waits.pop(0))
        return times.day

    times.go(10)
    written, at = times.day, times.passing
    monkeypatch.setattr(time, "time", day)
    clock.look()
    clock.look()
    assert not waits
    assert clock.passed(written) == pytest.approx(at)


def test_a_clock_that_runs_a_little_fast_was_not_set(times: Times) -> None:
    clock = WallClock()
    for _ in range(100):
        times.go(10, 0.02)
        clock.look()
    assert clock.passed(times.day) == pytest.approx(times.passing, abs=1.0)


def test_a_file_keeps_its_time_while_time_passes(times: Times) -> None:
    """Or it would be taken for one that was written anew. Its clock is half a second ahead."""
    clock = WallClock()
    times.go(10, 0.5)
    day, seen = times.day, set()
    for _ in range(20):
        clock.look()
        seen.add(clock.passed(day))
        times.go(0.1)
    assert len(seen) == 1


def test_the_newest_file_is_the_one_that_was_written_last(times: Times, tmp_path: Path) -> None:
    """Not the one with the highest time, after the clock was set back."""
    clock = WallClock()
    for name in ("old", "new"):
        times.go(10, -HOUR if name == "new" else 0)
        clock.look()
        (tmp_path / name).write_text(name, encoding="utf-8")
        os.utime(tmp_path / name, (times.day, times.day))
    assert saves.look(tmp_path).name == "old"
    found = saves.look(tmp_path, clock.passed)
    assert found.name == "new"
    assert found.newest == pytest.approx(times.passing)


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_a_leak_is_seen_all_the_same(times: Times, by: float) -> None:
    """Each checkpoint counts once, whatever the clock did between them."""
    clock, floors = WallClock(), growth.Floors()
    for at in range(12):
        times.go(10, by if at == 5 else 0)
        clock.look()
        floors.saved(clock.passed(times.day))
        floors.add(at * GIB)
    found = floors.growth(16 * GIB)
    assert found
    assert found.checkpoints == 12
