"""How busy GPUs and CPUs are while the script trains: whether the ones wait for the others."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Percent: gpu_threshold and cpu_threshold of SageMaker Debugger's rule CPUBottleneck.
IDLE, WORKING = 10.0, 90.0
_PROC = Path("/proc")
# Of what follows the name in /proc/PID/stat, in ticks: its own time, and that of children it has waited for.
_TIMES = slice(11, 15)


class Busy:
    """Counts samples from the first on in which a GPU worked: before it, the script loads its model and its data."""

    def __init__(self) -> None:
        self._before = 0
        self._samples = 0
        self._idle = 0
        self._waiting = 0
        self._gpu = 0.0
        self._cpu = 0.0

    def add(self, gpu: float | None, cpu: float | None) -> None:
        """A sample: percent of the GPUs and of the CPUs of this host, None where not known."""
        if gpu is None or cpu is None:
            return
        if not self._samples and gpu < IDLE:
            self._before += 1
            return
        self._samples += 1
        self._gpu += gpu
        self._cpu += cpu
        if gpu < IDLE:
            self._idle += 1
            self._waiting += cpu > WORKING

    def as_json(self) -> dict[str, Any] | None:
        """For sagefit.json; nothing where no GPU could be asked."""
        if not self._before and not self._samples:
            return None
        count = max(1, self._samples)
        return {
            "samples_before": self._before,
            "samples": self._samples,
            "idle_samples": self._idle,
            "waiting_samples": self._waiting,
            "gpu_percent": round(self._gpu / count, 1),
            "cpu_percent": round(self._cpu / count, 1),
        }


class Processors:
    """The share of this host's CPUs that the script's processes take between two calls."""

    def __init__(self) -> None:
        own = getattr(os, "sched_getaffinity", None)
        self._cores = len(own(0)) if own else os.cpu_count() or 1
        self._at = time.monotonic()
        self._spent: float | None = None

    def percent(self, members: Sequence[int], proc: Path = _PROC) -> float | None:
        """Percent since the last call; None at the first, and when processes have ended that nobody waited for."""
        now, spent = time.monotonic(), cpu_seconds(members, proc)
        seconds, before = now - self._at, self._spent
        self._at, self._spent = now, spent
        if before is None or spent < before or seconds <= 0:
            return None
        return 100 * (spent - before) / (seconds * self._cores)


def cpu_seconds(members: Sequence[int], proc: Path = _PROC) -> float:
    """What processes have computed, with those that they have started and waited for."""
    ticks = 0
    for pid in members:
        try:
            text = (proc / str(pid) / "stat").read_text()
        except OSError:  # it has just ended
            continue
        ticks += sum(map(int, text.rpartition(")")[2].split()[_TIMES]))
    return ticks / os.sysconf("SC_CLK_TCK")
