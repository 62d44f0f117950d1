"""Samples GPU memory with one long-running nvidia-smi, where there is one."""

from __future__ import annotations

import subprocess
import threading
from typing import IO, Any

QUERY = [
    "nvidia-smi",
    "--query-gpu=index,name,memory.used,memory.total",
    "--format=csv,noheader,nounits",
    "--loop-ms=500",
]
MIB = 1024**2


class Gpus:
    """The peaks of every GPU of this host. Without GPUs, or without nvidia-smi, there are none."""

    def __init__(self) -> None:
        self._peaks: dict[int, dict[str, Any]] = {}
        self._highest: float | None = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        try:
            self._process = subprocess.Popen(
                QUERY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True
            )
        except OSError:
            return
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def peaks(self) -> list[dict[str, Any]]:
        """Index, name, peak and total bytes of each GPU."""
        with self._lock:
            return [dict(self._peaks[index]) for index in sorted(self._peaks)]

    def highest_percent(self) -> float | None:
        """The fullest any GPU has been since the last call."""
        with self._lock:
            highest, self._highest = self._highest, None
            return highest

    def stop(self) -> None:
        """Ends nvidia-smi."""
        if self._process:
            self._process.terminate()
            self._reader.join(timeout=2)
            self._process.wait()

    def _read(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                fields = [field.strip() for field in line.split(",")]
                if len(fields) == 4 and all(fields[number].isdigit() for number in (0, 2, 3)):
                    self._add(int(fields[0]), fields[1], int(fields[2]) * MIB, int(fields[3]) * MIB)

    def _add(self, index: int, name: str, used: int, total: int) -> None:
        with self._lock:
            gpu = self._peaks.setdefault(index, {"index": index, "name": name, "peak_bytes": 0, "total_bytes": total})
            gpu["peak_bytes"] = max(gpu["peak_bytes"], used)
            if total:
                self._highest = max(self._highest or 0.0, 100 * used / total)
