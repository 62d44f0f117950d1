"""What the kernel of this machine lets a test do: memory control groups, and mounts in a namespace."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sagefit_launcher import memory

NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]


def can_mount() -> bool:
    """Whether a file system can be mounted for one process and its children."""
    try:
        done = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def mounted(folder: Path, size: str, saved: Path | None = None) -> list[str]:
    """Words before a command that give it a file system of that size; what is left on it is copied to ``saved``."""
    folder.mkdir(parents=True, exist_ok=True)
    script = f'mount -t tmpfs -o size={size} tmpfs "$0" && "$@"; code=$?'
    if saved:
        script += f'; cp -a "$0" "{saved}"'
    return [*NAMESPACE, "sh", "-c", f"{script}; exit $code", str(folder)]


@contextlib.contextmanager
def memory_group(limit_mib: int) -> Iterator[Path | None]:
    """A control group with a memory limit, below this process's own; None where the kernel gives no such right."""
    groups = memory.find_groups()
    group = groups[0] / f"sagefit-test-{os.getpid()}" if groups else None
    try:
        if group:
            group.mkdir()
            version_1 = (group / "memory.limit_in_bytes").exists()
            (group / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(f"{limit_mib}M")
    except OSError:
        with contextlib.suppress(OSError):
            if group:
                group.rmdir()
        group = None
    yield group
    if group:
        group.rmdir()


def inside(group: Path) -> list[str]:
    """Words before a command that run it in a control group."""
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]
