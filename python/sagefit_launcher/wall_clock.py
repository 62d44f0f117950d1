"""When a file was written, by the time that passes and not by the time of day, which may be set while a script runs.

A host's clock is set by NTP, mostly soon after it starts: then the time of a file from before says nothing of how long
ago that was. So the difference between both clocks is looked at as often as memory is, and each change remembered.
"""

from __future__ import annotations

import time
from typing import NamedTuple

SET = 1.0  # seconds by which a clock is set; less is an adjustment
APART = 0.1  # seconds at most between two readings of one moment
READINGS = 5  # at most, of which the closest counts


class _Stretch(NamedTuple):
    """From when on both clocks differed by how much, in seconds; the first by the clock that is never set."""

    since: float
    ahead: float


class WallClock:
    """The time of day beside the time that passes (``time.monotonic``), since this was made."""

    def __init__(self) -> None:
        self._stretches: list[_Stretch] = [_now()]

    def look(self) -> None:
        """Look whether the clock was set since it was last looked at."""
        now = _now()
        if abs(now.ahead - self._stretches[-1].ahead) >= SET:
            self._stretches.append(now)

    def passed(self, wall: float) -> float:
        """When it was ``wall`` by the clock, as ``time.monotonic`` has it; before this was made by the clock of then.

        A clock that was set back shows the same time twice: the later one counts.
        """
        until = time.monotonic()
        for since, ahead in reversed(self._stretches):
            at = wall - ahead
            if since - SET <= at <= until + SET:
                return max(at, since)
            until = since
        return wall - self._stretches[0].ahead


def _now() -> _Stretch:
    """Both clocks at one moment. A process may have to wait between two readings: that is no clock that was set."""
    readings = []
    for _ in range(READINGS):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        readings.append((after - before, before, wall - before))
        if after - before < APART:
            break
    _, now, ahead = min(readings)
    return _Stretch(now, ahead)
