"""Reads host memory from the kernel: the process tree, the control group, the limit, and the count of OOM kills."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60  # version 1 writes a huge number instead of "max"


class _Files(NamedTuple):
    """What a version of control groups calls its files, and the counter of file cache that can be dropped."""

    limit: str
    usage: str
    peak: str
    events: str
    inactive: str


_V1 = _Files(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.oom_control",
    "total_inactive_file",
)
_V2 = _Files("memory.max", "memory.current", "memory.peak", "memory.events", "inactive_file")


class Limit(NamedTuple):
    """The memory this host may use, and the control group that says so, if one does."""

    size: int | None
    group: Path | None


class Used(NamedTuple):
    """Memory of a process tree, in bytes: now, of that the shared memory it has mapped, and the most of one process.

    The first two are of one moment: a process that ends has nothing mapped any more, while its batches still lie in
    ``/dev/shm`` for an instant.
    """

    size: int
    shared: int
    peak: int


def find_groups(proc: Path = PROC, cgroups: Path = CGROUPS) -> list[Path]:
    """The memory control group of this process and those above it, innermost first."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top = cgroups / controllers
        inner = top / name.strip("/")
        # With a private view the group's own folder is mounted at the top, whatever its name is outside.
        folders = [inner, *inner.parents] if inner.is_dir() and top in [inner, *inner.parents] else [top]
        found = [folder for folder in folders if (folder / _files(folder).usage).is_file()]
        if found:
            return found
    return []


def find_limit(groups: list[Path], proc: Path = PROC) -> Limit:
    """The smallest of: the limits of the control groups, ``SAGEFIT_MEMORY_LIMIT_BYTES``, the machine's memory."""
    limits = [Limit(_number(_text(group / _files(group).limit)), group) for group in groups]
    limits.append(Limit(_number(os.environ.get("SAGEFIT_MEMORY_LIMIT_BYTES", "")), None))
    total = [line.split()[1] for line in _text(proc / "meminfo").splitlines() if line.startswith("MemTotal:")]
    limits.append(Limit(int(total[0]) * 1024 if total else None, None))
    known = [limit for limit in limits if limit.size is not None and limit.size < _UNLIMITED]
    return min(known, key=lambda limit: limit.size or 0) if known else Limit(None, None)


def group_usage(group: Path) -> int:
    """What the group uses without the file cache that the kernel can drop: what counts before it kills."""
    files = _files(group)
    used = _number(_text(group / files.usage)) or 0
    return max(0, used - _counter(group / "memory.stat", files.inactive))


def group_peak(group: Path) -> int | None:
    """The most that the group ever used, by the kernel's own account (version 2: from Linux 5.19), cache included."""
    return _number(_text(group / _files(group).peak))


def group_kills(groups: list[Path]) -> int:
    """How many processes of the group the kernel has killed for memory."""
    return _counter(groups[0] / _files(groups[0]).events, "oom_kill") if groups else 0


def children(parent: int, proc: Path = PROC) -> list[int]:
    """The processes that ``parent`` has started and that still run."""
    return _by_parent(proc).get(parent, [])


def tree(top: int, proc: Path = PROC) -> list[int]:
    """The process ``top`` and all below it; none once it has been waited for."""
    by_parent = _by_parent(proc)
    members = [top] if any(top in started for started in by_parent.values()) else []
    for pid in members:
        members.extend(by_parent.get(pid, []))
    return members


def tree_usage(members: Sequence[int], proc: Path = PROC) -> Used:
    """Memory of the launcher and the processes of a ``tree``; shared memory of these processes alone.

    Several processes share pages (the workers of a data loader begin as copies), so their proportional sizes are
    added up. One process has its resident size. A tree whose top has ended has nothing. Batches on their way from a
    loader's worker are not in it: they lie in ``/dev/shm``, and no process has them mapped.
    """
    resident = {
        pid: _sizes(proc / str(pid) / "status", "VmRSS", "RssShmem", "VmHWM") for pid in [*members, os.getpid()]
    }
    if not members or not resident[members[0]][0]:
        return Used(0, 0, 0)
    used = {pid: (size, shared) for pid, (size, shared, _) in resident.items()}
    if len(members) > 1:
        for pid in used:
            size, shared = _sizes(proc / str(pid) / "smaps_rollup", "Pss", "Pss_Shmem")
            used[pid] = (size, shared) if size else used[pid]
    peak = max(high for _, _, high in resident.values())
    return Used(sum(size for size, _ in used.values()), sum(used[pid][1] for pid in members), peak)


def children_peak() -> int:
    """The highest resident size any ended child had, by the kernel's own account. It survives a kill."""
    try:
        import resource
    except ImportError:  # no such account on this system
        return 0
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _files(group: Path) -> _Files:
    return _V1 if (group / _V1.usage).is_file() else _V2


def _by_parent(proc: Path) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    try:
        pids = [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()]
    except OSError:
        return {}
    for pid in pids:
        # The second field is the program's name in parentheses, which may hold anything.
        after = _text(proc / str(pid) / "stat").rpartition(")")[2].split()
        if len(after) > 1:
            found.setdefault(int(after[1]), []).append(pid)
    return found


def _sizes(path: Path, *names: str) -> list[int]:
    """The bytes that a file of ``/proc`` has for each name, 0 where it has none, all by one reading."""
    sizes = dict.fromkeys(names, 0)
    for line in _text(path).splitlines():
        name, _, value = line.partition(":")
        if name in sizes:
            sizes[name] = int(value.split()[0]) * 1024
    return list(sizes.values())


def _counter(path: Path, name: str) -> int:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # another system, or a process that has just ended
