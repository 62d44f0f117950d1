"""How Terraform and its providers, which are written in Go, use the memory of this machine.

Most of the time of a small plan goes into reading the AWS provider's schema, on both sides, and a quarter to a third
of that into collecting its garbage. So Go collects when nine times as much is in use as was left the last time, and not
two times (https://go.dev/doc/gc-guide#GOGC). Not to collect at all takes three times the memory, and no less time: the
system has to find that memory. Where a process holds its share of the machine's memory, Go collects as it has to
(https://go.dev/doc/gc-guide#Memory_limit).
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
    """What Terraform's environment gets for it: nothing where the user has set it, or where memory is scarce.

    Args:
        memory_bytes: What the machine has; None looks.
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
