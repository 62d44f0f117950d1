"""The identity of a process: its number and its start, because the system uses numbers again.

A start time in seconds since 1970 is reckoned from the time of the boot, which moves whenever the clock is set: by NTP
after a pause of a virtual machine, or by hand. So on Linux the start is also kept as the system counts it, in ticks
since the boot (proc_pid_stat(5), ``starttime``), beside the name of the boot (random(4), ``boot_id``).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

_SAME = 0.5  # seconds; where only a time of the day tells, it is reckoned with a clock that may be adjusted a little
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STARTTIME = 19  # of the fields that follow the name of the program


@dataclass(frozen=True)
class Identity:
    """One process of this machine, alive or not.

    ``started`` is in seconds since 1970, by the clock as it was when the identity was taken. ``since_boot`` is in
    seconds since the boot that is called ``boot``; where the system does not tell (macOS), 0 and empty.
    """

    pid: int
    started: float
    since_boot: float = 0.0
    boot: str = ""

    @classmethod
    def of(cls, pid: int | None = None) -> Identity:
        """The process that has this number now; this one where no number is given.

        Raises psutil.NoSuchProcess where there is none.
        """
        process = psutil.Process(pid)
        return cls(process.pid, process.create_time(), *_counted(process.pid))

    def process(self) -> psutil.Process | None:
        """The process, if it still runs."""
        try:
            process, now = psutil.Process(self.pid), Identity.of(self.pid)
            same = self._is(now)
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None

    def is_older_than(self, other: Identity) -> bool:
        """Whether this process was started before the other, whatever was done to the clock in between."""
        if self.boot and self.boot == other.boot:
            return self.since_boot < other.since_boot
        return self.started < other.started

    def age(self) -> float:
        """Seconds since it was started."""
        if self.boot and self.boot == _boot():
            return time.clock_gettime(time.CLOCK_BOOTTIME) - self.since_boot
        return max(0.0, time.time() - self.started)

    def clock_was_set(self) -> bool:
        """Whether the clock was set since this identity was taken, so that times of then and now do not compare."""
        return self.boot == _boot() != "" and abs(psutil.boot_time() - (self.started - self.since_boot)) > _SAME

    def _is(self, now: Identity) -> bool:
        if self.boot and now.boot:
            return (self.boot, self.since_boot) == (now.boot, now.since_boot)
        return abs(now.started - self.started) < _SAME


def running() -> Iterator[psutil.Process]:
    """Every process of this machine, looked at anew.

    ``psutil.process_iter`` keeps the processes that it has seen in this process before. Where the system has used a
    number again since, it gives the old one, and a signal to that is refused: nobody would end the new one.
    """
    for pid in psutil.pids():
        try:
            process = psutil.Process(pid)
        except psutil.NoSuchProcess:
            continue
        yield process


def _counted(pid: int) -> tuple[float, str]:
    """When a process started, in seconds since the boot, and which boot; 0 and nothing where that is not told."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        after_the_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        if boot := _boot():
            return int(after_the_name.split()[_STARTTIME]) / os.sysconf("SC_CLK_TCK"), boot
    return 0.0, ""


@cache
def _boot() -> str:
    with contextlib.suppress(OSError):
        return _BOOT.read_text(encoding="ascii").strip()
    return ""
