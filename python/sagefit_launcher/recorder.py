"""The flight recorder: samples memory and file systems while the script runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import busy, growth, history, memory, report, saves, volumes
from .gpus import Gpus
from .process import Console
from .torch_peaks import TorchPeaks
from .volumes import Space
from .wall_clock import WallClock

EVERY = 0.2  # seconds between two samples, more where taking one is slow
KEEP_EVERY = 1.0  # seconds between two samples that sagefit.json keeps
KEPT_SAMPLES = 60
REPORT_EVERY = 2.0  # seconds between two writings of sagefit.json
PRINT_EVERY = 30.0  # seconds between two metric lines
NEAR = 0.85  # this share of the limit is close enough for a kill to have been for memory
DISK_FULL = 0.99  # from this share on a checkpoint that was just being written did not fit
FULL = 0.95  # from this share on memory is at its limit: a failure that nothing explains was for it
RECENT = 2.0  # seconds before the end that count for it
LOOK_SHARE = 0.1  # of the time may be spent on looking for checkpoints
LINGER = 5.0  # seconds to wait for a sample: a file system may not answer any more


class Gauge:
    """A number of bytes over time: its peak, its last value, and how high it has been of late."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.peak = 0
        self.now = 0
        self.total = 0  # of what it is a part, where that is known
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, seconds: float, value: int) -> None:
        """The value at a time; times go up."""
        self.first = value if self.first is None else self.first
        self.now = value
        self.peak = max(self.peak, value)
        self._recent.append((seconds, value))
        while self._recent[0][0] < seconds - RECENT:
            self._recent.popleft()

    @property
    def lately(self) -> int:
        """The highest of the last values."""
        return max((value for _, value in list(self._recent)), default=0)


class Recorder:
    """Records what one program uses, from start to end."""

    def __init__(
        self,
        program: int,
        root: Path,
        checkpoints: Path,
        kept: bool,
        torch: TorchPeaks,
        console: Console,
        write: Callable[[], None],
    ) -> None:
        self._program = program
        self._checkpoints = checkpoints
        self._are_kept = kept  # for another attempt
        self._saved: dict[str, Any] = dict(report.NOTHING["checkpoints"])
        self._look_at = 0.0
        self._floors = growth.Floors()
        self._console = console
        self._write = write
        self._torch = torch
        self._groups = memory.find_groups()
        self._limit = memory.find_limit(self._groups)
        self._kills = memory.group_kills(self._groups)
        self._others_peak = memory.children_peak()  # of children before this program, such as pip
        self._members: list[int] = []
        self._gpus = Gpus(lambda: self._members)
        self._clock = WallClock()
        self._started = time.monotonic()
        self._host, self._tree = Gauge(), Gauge()
        self._shared = Gauge()
        self._shared_before: int | None = None
        self._disks = {folder: Gauge() for folder in volumes.disks(root)}
        self._samples: deque[dict[str, Any]] = deque(maxlen=KEPT_SAMPLES)
        self._history = history.History()
        self._busy = busy.Busy()
        self._processors = busy.Processors()
        self._seconds = 0.0  # when the last of all samples was taken
        self._kept = -KEEP_EVERY
        self._highest_kept = 0  # since the last sample that was kept
        self._highest_printed = 0  # since the last metric line
        self._over = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Takes the first sample and goes on in the background."""
        self._thread.start()
        self._began.wait(LINGER)

    def stop(self) -> None:
        """Ends the recording once the program has ended, and adds what the kernel knows of its peak."""
        self._over.set()
        self._thread.join(LINGER)
        if self._thread.is_alive():
            return
        self._look_at = 0.0
        self._look()
        self._sample_spaces(self._seconds)  # the end of the program, however long its output took to end
        peak = memory.children_peak()
        if peak > max(self._host.peak, self._others_peak):
            self._remember(peak)  # the program grew past every sample after the last of them
        elif not self._host.peak:
            self._host.peak = peak  # over before the first sample; the kernel has one account of all children
        self._keep()
        self.print()

    def close(self) -> None:
        """Ends what else samples; it may take seconds."""
        self._gpus.stop()

    def killed_for_memory(self) -> bool:
        """Whether a kill at the end of the recording was the kernel's answer to a lack of host memory."""
        near = self._limit.size is not None and self._host.lately >= NEAR * self._limit.size
        return near or self.kernel_killed()

    def is_full(self) -> bool:
        """Whether host memory was at its limit shortly before the end."""
        return self._limit.size is not None and self._host.lately >= FULL * self._limit.size

    def growth(self) -> growth.Growth | None:
        """Host memory that grew from one checkpoint to the next."""
        return self._floors.growth(self._limit.size)

    def kernel_killed(self) -> bool:
        """Whether the kernel counted a kill for memory in this container since the start."""
        return self._kernel_kills() > 0

    def at_the_end(self) -> str:
        """Host memory shortly before the end, in words: ``0.49 of 0.50 GiB``."""
        limit = f" of {self._limit.size / report.GIB:.2f}" if self._limit.size else ""
        return f"{self._host.lately / report.GIB:.2f}{limit} GiB"

    def shared_memory(self) -> Space | None:
        """How full ``/dev/shm`` was shortly before the end."""
        return _lately(volumes.SHARED_MEMORY, self._shared)

    def fullest_disk(self) -> Space | None:
        """The disk that was fullest shortly before the end."""
        found = filter(None, (_lately(folder, gauge) for folder, gauge in self._disks.items()))
        return max(found, key=lambda space: space.share, default=None)

    def summary(self) -> dict[str, Any]:
        """The measured part of sagefit.json."""
        return {
            "seconds": round(time.monotonic() - self._started, 1),
            "host_memory": {
                "peak_bytes": self._host.peak,
                "limit_bytes": self._limit.size,
                "source": "cgroup" if self._limit.group else "process tree",
                "tree_peak_bytes": self._tree.peak,
                "cgroup_peak_bytes": memory.group_peak(self._groups[0]) if self._groups else None,
                "oom_kills": self._kernel_kills(),
            },
            "shared_memory": {"peak_bytes": self._shared.peak, "total_bytes": self._shared.total},
            "disks": [
                {
                    "path": str(folder),
                    "first_bytes": gauge.first,
                    "peak_bytes": gauge.peak,
                    "total_bytes": gauge.total,
                }
                for folder, gauge in self._disks.items()
            ],
            "gpus": self._gpus.peaks(),
            "torch": self._torch.read(),
            "samples": list(self._samples),
            "history": self._history.as_json(),
            "checkpoints": self._saved,
            "growth": grown.as_json() if (grown := self.growth()) else None,
            "busy": self._busy.as_json(),
        }

    def print(self) -> None:
        """Prints a metric line: the highest values since the line before."""
        highest, self._highest_printed = self._highest_printed, 0
        percent = self._gpus.highest_percent()
        highest = highest or self._host.now
        saved = self._saved["saved_seconds"] if self._are_kept else None
        unsaved = max(0.0, self._now() - (saved or 0.0))
        self._console.line(report.metric_line(highest, self._host.peak, self._limit.size, percent, unsaved))

    def _kernel_kills(self) -> int:
        return memory.group_kills(self._groups) - self._kills

    def _now(self) -> float:
        return round(time.monotonic() - self._started, 2)

    def _run(self) -> None:
        self._sample()
        self.print()
        self._write()
        self._began.set()
        written = printed = self._started
        pause = EVERY
        while not self._over.wait(pause):
            before = time.monotonic()
            self._sample()
            now = time.monotonic()
            pause = max(EVERY, 20 * (now - before))
            self._look()
            if now - written >= REPORT_EVERY:
                self._write()
                written = now
            if now - printed >= PRINT_EVERY:
                self.print()
                printed = now

    def _sample(self) -> None:
        self._members = memory.tree(self._program)
        tree = memory.tree_usage(self._members)
        if not tree.size:
            return  # it has ended: what is left is not its memory
        self._sample_spaces(self._now())
        used = tree.size + self._unmapped(tree.shared)
        self._tree.add(self._now(), used)
        if self._limit.group:
            used = memory.group_usage(self._limit.group)
        self._host.peak = max(self._host.peak, tree.peak)
        self._remember(used)
        if self._now() - self._kept >= KEEP_EVERY:
            self._keep()

    def _unmapped(self, mapped: int) -> int:
        """What lies in shared memory since the start and belongs to no process: a control group counts it, too."""
        if self._shared_before is None:
            self._shared_before = self._shared.now
        return max(0, self._shared.now - self._shared_before - mapped)

    def _sample_spaces(self, seconds: float) -> None:
        self._seconds = seconds
        for folder, gauge in ((volumes.SHARED_MEMORY, self._shared), *self._disks.items()):
            space = volumes.space(folder)
            if space:
                gauge.total = space.total
                gauge.add(seconds, space.used)

    def _look(self) -> None:
        """Looks when the script last saved, and less often where that takes long."""
        self._clock.look()
        now = time.monotonic()
        if now < self._look_at:
            return
        found = saves.look(self._checkpoints, self._clock.passed)
        space = volumes.space(self._checkpoints)
        if found.entry and space and space.share >= DISK_FULL:  # what was written last did not fit: the one before it
            found = saves.look(self._checkpoints, self._clock.passed, without=found.entry)
        self._look_at = now + max(KEEP_EVERY, (time.monotonic() - now) / LOOK_SHARE)
        if found.newest is None or found.newest <= self._started:  # there before the script: of an earlier attempt
            saved = None
        else:
            saved = round(min(found.newest, now) - self._started, 1)
            self._floors.saved(found.newest)
        name = found.name if saved is not None else None
        self._saved = {"files": found.files, "bytes": found.bytes, "saved_seconds": saved, "newest": name}

    def _remember(self, used: int) -> None:
        self._host.add(self._now(), used)
        self._history.add(self._now(), used, max(self._gpus.now(), default=None))
        self._floors.add(used)
        self._highest_kept = max(self._highest_kept, used)
        self._highest_printed = max(self._highest_printed, used)

    def _keep(self) -> None:
        """Keeps a sample: the highest host memory since the one before, all else as it is now."""
        self._kept = self._now()
        self._samples.append(
            {
                "seconds": self._kept,
                "host_bytes": self._highest_kept or self._host.lately,
                "shm_bytes": self._shared.now,
                "disk_bytes": [gauge.now for gauge in self._disks.values()],
                "gpu_bytes": self._gpus.now(),
            }
        )
        self._highest_kept = 0
        gpus = self._gpus.busy_percent()
        if gpus is not None:
            self._busy.add(gpus, self._processors.percent(self._members))


def _lately(folder: Path, gauge: Gauge) -> Space | None:
    return Space(folder, gauge.lately, gauge.total) if gauge.total else None
