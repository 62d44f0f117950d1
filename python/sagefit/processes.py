"""The identity of a process: its number and its start time, because the system uses numbers again."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

_SAME = 0.5  # seconds; the system computes start times with a clock that may be adjusted a little


@dataclass(frozen=True)
class Identity:
    """One process of this machine, alive or not. ``started`` is in seconds since 1970."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int | None = None) -> Identity:
        """The process that has this number now; this one where no number is given.

        Raises psutil.NoSuchProcess where there is none.
        """
        process = psutil.Process(pid)
        return cls(process.pid, process.create_time())

    def process(self) -> psutil.Process | None:
        """The process, if it still runs."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < _SAME
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None
