"""The memory limit of a container: a watcher that does what the kernel's OOM killer does for a control group."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from pathlib import Path

import psutil

_LOG = logging.getLogger(__name__)
_INTERVAL = 0.02
_TREE_INTERVAL = 0.1
_PEAK_INTERVAL = 0.1
_DEATH_SECONDS = 2.0


class MemoryWatch(threading.Thread):
    """Watches all processes below one, and kills the largest when together they use more than the limit.

    The sum of resident sizes counts shared pages several times, so it is an upper bound, and cheap: every sample takes
    it. Only when it is over the limit the exact figure is worked out from proportional sizes.
    """

    def __init__(self, pid: int, limit_bytes: int, *, measure: bool = False) -> None:
        super().__init__(name=f"memory-watch-{pid}", daemon=True)
        self._root = psutil.Process(pid)
        self._limit = limit_bytes
        self._tree: list[psutil.Process] = []
        self._tree_read = 0.0
        self._ended = threading.Event()
        self._measure, self._measured = measure, 0.0
        self.kills = 0
        self.peak = 0

    def run(self) -> None:
        """Sample until told to stop."""
        while not self._ended.wait(_INTERVAL):
            sizes = [_resident(process) for process in self._processes()]
            if sum(sizes) > self._limit:
                self._enforce()
            if self._measure and time.monotonic() - self._measured > _PEAK_INTERVAL:
                self.peak = max(self.peak, self.used())
                self._measured = time.monotonic()

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()

    def used(self) -> int:
        """Bytes in use now."""
        return sum(_charged(process) for process in self._processes())

    def cpu_seconds(self) -> dict[int, float]:
        """Processor time used so far, by process."""
        seconds: dict[int, float] = {}
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                seconds[process.pid] = times.user + times.system
        return seconds

    def _processes(self) -> list[psutil.Process]:
        if time.monotonic() - self._tree_read > _TREE_INTERVAL:
            try:
                self._tree = self._root.children(recursive=True)
            except psutil.Error:
                self._tree = []
            self._tree_read = time.monotonic()
        return self._tree

    def _enforce(self) -> None:
        sizes = {process: _charged(process) for process in self._processes()}
        total = sum(sizes.values())
        self.peak = max(self.peak, total)
        if total <= self._limit:
            return
        victim = max(sizes, key=lambda process: sizes[process])
        with contextlib.suppress(psutil.Error):
            victim.kill()
            self.kills += 1
            _LOG.info("killed process %d: %d bytes in use, limit %d", victim.pid, total, self._limit)
        deadline = time.monotonic() + _DEATH_SECONDS
        while time.monotonic() < deadline and _resident(victim) > 0 and not self._ended.is_set():
            time.sleep(_INTERVAL / 2)
        self._tree_read = 0.0


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _charged(process: psutil.Process) -> int:
    """Bytes the kernel could not take back: anonymous and shared memory, shared pages split between their users."""
    try:
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    except OSError:
        return _resident(process)
    values = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    if "Pss_Anon" in values:
        return (values["Pss_Anon"] + values["Pss_Shmem"]) * 1024
    return values.get("Pss", 0) * 1024
