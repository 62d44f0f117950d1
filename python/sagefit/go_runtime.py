"""How Terraform and its providers, which are written in Go, use the memory of this machine.

A small plan spends most of its time on reading the AWS provider's schema, in both processes, and a quarter to a third
of that time on garbage collection. So Go collects when nine times as much memory is in use as the last collection left,
instead of two times (https://go.dev/doc/gc-guide#GOGC). No collection at all takes three times the memory and saves no
time, because the system has to provide that memory. A process that reaches its share of the machine's memory collects
as often as necessary (https://go.dev/doc/gc-guide#Memory_limit).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

_PERCENT = "800"  # of what was left after a collection, that may be added before the next
_SHARE = 8  # Terraform, one or two processes of the provider, and as much again for everybody else
_LEAST = 256 << 20  # bytes; a schema and a plan fit into less only with Go's own setting
_MOST = 4 << 30

_CONTROL_GROUPS = ("memory.max", "memory/memory.limit_in_bytes")  # of version 2 and of version 1


def environment(memory_bytes: int | None = None) -> dict[str, str]:
    """The variables for Terraform's environment: none when the user has set them, or when memory is scarce.

    Args:
        memory_bytes: The machine's memory; None reads it from the system.
    """
    if "GOGC" in os.environ or "GOMEMLIMIT" in os.environ:
        return {}
    limit = min((memory() if memory_bytes is None else memory_bytes) // _SHARE, _MOST)
    if limit < _LEAST:
        return {}
    return {"GOGC": _PERCENT, "GOMEMLIMIT": f"{limit >> 20}MiB"}


def memory(control_groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that processes here may use: the machine's, or the container's limit."""
    limits = [psutil.virtual_memory().total]
    for name in _CONTROL_GROUPS:
        with contextlib.suppress(OSError, ValueError):  # there is none, or it says "max"
            limits.append(int((control_groups / name).read_text(encoding="ascii")))
    return min(limits)
