"""Samples memory and use of GPUs: with NVML, or where that cannot be loaded with long-running nvidia-smi."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable, Collection, Iterable
from typing import IO, Any

from .nvml import Gpu, Nvml, NvmlError

EVERY = 0.5  # seconds
MIB = 1024**2
_OPTIONS = ["--format=csv,noheader,nounits", f"--loop-ms={int(EVERY * 1000)}"]
MEMORY = ["nvidia-smi", "--query-gpu=index,name,memory.used,memory.total,utilization.gpu", *_OPTIONS]
PROCESSES = ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", *_OPTIONS]


def count() -> int:
    """The number of NVIDIA GPUs in this container."""
    try:
        return len(Nvml())
    except NvmlError:
        return len(_listed())


class Gpus:
    """The peaks of every GPU of this host, and of the script's part of it. Without GPUs there are none."""

    def __init__(self, members: Callable[[], Collection[int]]) -> None:
        self._members = members  # the script's processes
        self._peaks: dict[int, dict[str, Any]] = {}
        self._now: dict[int, int] = {}
        self._busy: dict[int, int] = {}
        self._highest: float | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._uuids: list[str] = []
        self._apps: dict[tuple[str, int], int] = {}
        self._tools: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        try:
            nvml = Nvml()
            self._add(nvml.read())
            self._begin(lambda: self._poll(nvml))
        except NvmlError:
            self._uuids = _listed()
            if self._uuids:
                self._begin_tool(PROCESSES, self._read_processes)
                self._begin_tool(MEMORY, self._read_memory)

    def peaks(self) -> list[dict[str, Any]]:
        """Index, name, peak and total bytes of each GPU.

        ``script_peak_bytes`` is the script's own share; None where the driver does not tell, as in a container
        whose process ids it does not know.
        """
        with self._lock:
            return [dict(self._peaks[index]) for index in sorted(self._peaks)]

    def now(self) -> list[int]:
        """Bytes in use on each GPU by the last sample."""
        with self._lock:
            return [self._now[index] for index in sorted(self._now)]

    def busy_percent(self) -> float | None:
        """How busy the GPUs were by the last sample, as a mean of all; None where there is none or nobody tells."""
        with self._lock:
            return sum(self._busy.values()) / len(self._busy) if self._busy else None

    def highest_percent(self) -> float | None:
        """The fullest any GPU has been since the last call."""
        with self._lock:
            highest, self._highest = self._highest, None
            return highest

    def stop(self) -> None:
        """Ends the sampling. A driver that does not answer any more is not waited for."""
        self._over.set()
        for tool in self._tools:
            tool.terminate()
        for thread in self._threads:
            thread.join(timeout=2)
        for tool in self._tools:
            tool.wait()

    def _begin(self, work: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=work, daemon=True))
        self._threads[-1].start()

    def _begin_tool(self, command: list[str], read: Callable[[IO[str]], None]) -> None:
        tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._tools.append(tool)
        lines = tool.stdout
        assert lines is not None  # noqa: S101 - it is a pipe
        self._begin(lambda: read(lines))

    def _poll(self, nvml: Nvml) -> None:
        while not self._over.wait(EVERY):
            try:
                self._add(nvml.read())
            except NvmlError:  # a GPU may be lost; the peaks so far are kept
                continue

    def _read_memory(self, lines: IO[str]) -> None:
        with lines:
            for index, name, used, total, busy in _rows(lines, 5):
                if index.isdigit() and used.isdigit() and total.isdigit():
                    uuid = self._uuids[int(index)] if int(index) < len(self._uuids) else ""
                    apps = {pid: size for (where, pid), size in list(self._apps.items()) if where == uuid}
                    percent = int(busy) if busy.isdigit() else None
                    self._add([Gpu(int(index), name, int(used) * MIB, int(total) * MIB, apps, percent)])

    def _read_processes(self, lines: IO[str]) -> None:
        with lines:
            for uuid, pid, used in _rows(lines, 3):
                if pid.isdigit() and used.isdigit():
                    self._apps[uuid, int(pid)] = int(used) * MIB

    def _add(self, gpus: Iterable[Gpu]) -> None:
        members = self._members()
        with self._lock:
            for gpu in gpus:
                first = {"index": gpu.number, "name": gpu.name, "peak_bytes": 0, "total_bytes": gpu.total}
                peaks = self._peaks.setdefault(gpu.number, {**first, "script_peak_bytes": None})
                peaks["peak_bytes"] = max(peaks["peak_bytes"], gpu.used)
                own = [size for pid, size in gpu.processes.items() if pid in members]
                if own:
                    peaks["script_peak_bytes"] = max(peaks["script_peak_bytes"] or 0, sum(own))
                self._now[gpu.number] = gpu.used
                if gpu.busy is not None:
                    self._busy[gpu.number] = gpu.busy
                if gpu.total:
                    self._highest = max(self._highest or 0.0, 100 * gpu.used / gpu.total)


def _listed() -> list[str]:
    """The identifiers of the GPUs that nvidia-smi lists, by index."""
    try:
        listing = subprocess.run(
            ["nvidia-smi", "--list-gpus"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError:
        return []
    return re.findall(r"^GPU \d+: .*\(UUID: (.*)\)\s*$", listing.stdout, re.MULTILINE)


def _rows(lines: Iterable[str], width: int) -> Iterable[list[str]]:
    rows = ([field.strip() for field in line.split(",")] for line in lines)
    return (row for row in rows if len(row) == width)
