"""The flight recorder: samples memory while the script runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from . import memory, report
from .gpus import Gpus
from .process import Console

EVERY = 0.2  # seconds between two samples, more where taking one is slow
REPORT_EVERY = 2.0  # seconds between two writings of sagefit.json
PRINT_EVERY = 30.0  # seconds between two metric lines
KEPT_SAMPLES = 120
NEAR = 0.85  # this share of the limit is close enough for a kill to have been for memory
RECENT = 2.0  # seconds before the end that count for it
NOTHING: dict[str, Any] = {
    "seconds": 0.0,
    "host_memory": {"peak_bytes": 0, "limit_bytes": None, "source": "none"},
    "gpus": [],
    "samples": [],
}


class Recorder:
    """Records the memory of one program from start to end."""

    def __init__(self, program: int, console: Console, write: Callable[[], None]) -> None:
        self._program = program
        self._console = console
        self._write = write
        self._groups = memory.find_groups()
        self._limit = memory.find_limit(self._groups)
        self._kills = memory.group_kills(self._groups)
        self._others_peak = memory.children_peak()  # of children before this program, such as pip
        self._gpus = Gpus()
        self._started = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque(maxlen=KEPT_SAMPLES)
        self._peak = 0
        self._highest = 0  # since the last metric line
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Takes the first sample and goes on in the background."""
        self._sample()
        self.print()
        self._write()
        self._thread.start()

    def stop(self) -> None:
        """Ends the recording once the program has ended, and adds what the kernel knows of its peak."""
        self._over.set()
        self._thread.join()
        self._gpus.stop()
        peak = memory.children_peak()
        if peak > max(self._peak, self._others_peak):
            # The program grew past every sample after the last of them.
            self._remember(peak)
        self.print()

    def killed_for_memory(self) -> bool:
        """Whether a kill at the end of the recording was the kernel's answer to a lack of host memory."""
        near = self._limit.size is not None and self._last_use() >= NEAR * self._limit.size
        return near or self.kernel_killed()

    def kernel_killed(self) -> bool:
        """Whether the kernel counted a kill for memory in this container since the start."""
        return memory.group_kills(self._groups) > self._kills

    def at_the_end(self) -> str:
        """Host memory shortly before the end, in words: ``0.49 of 0.50 GiB``."""
        limit = f" of {self._limit.size / report.GIB:.2f}" if self._limit.size else ""
        return f"{self._last_use() / report.GIB:.2f}{limit} GiB"

    def summary(self) -> dict[str, Any]:
        """The measured part of sagefit.json."""
        return {
            "seconds": round(time.monotonic() - self._started, 1),
            "host_memory": {
                "peak_bytes": self._peak,
                "limit_bytes": self._limit.size,
                "source": "cgroup" if self._limit.group else "process tree",
            },
            "gpus": self._gpus.peaks(),
            "samples": [{"seconds": seconds, "host_bytes": used} for seconds, used in list(self._samples)],
        }

    def print(self) -> None:
        """Prints a metric line: the highest values since the line before."""
        highest, self._highest = self._highest, 0
        self._console.line(report.metric_line(highest, self._peak, self._limit.size, self._gpus.highest_percent()))

    def _last_use(self) -> int:
        end = self._samples[-1][0] if self._samples else 0.0
        return max((used for seconds, used in self._samples if seconds >= end - RECENT), default=0)

    def _run(self) -> None:
        written = printed = self._started
        pause = EVERY
        while not self._over.wait(pause):
            before = time.monotonic()
            self._sample()
            now = time.monotonic()
            pause = max(EVERY, 20 * (now - before))
            if now - written >= REPORT_EVERY:
                self._write()
                written = now
            if now - printed >= PRINT_EVERY:
                self.print()
                printed = now

    def _sample(self) -> None:
        used, highest = memory.tree_usage(self._program)
        if not used:
            return  # it has ended: what is left is not its memory
        if self._limit.group:
            used = memory.group_usage(self._limit.group)
        self._peak = max(self._peak, highest)
        self._remember(used)

    def _remember(self, used: int) -> None:
        self._peak = max(self._peak, used)
        self._highest = max(self._highest, used)
        self._samples.append((round(time.monotonic() - self._started, 2), used))
