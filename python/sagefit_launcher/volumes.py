"""How full the file systems are that a script writes to: the disks, and ``/dev/shm``, which is memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux has it


class Space(NamedTuple):
    """Bytes of the file system that a folder is on. Without free inodes all of it is used: no file can be made."""

    path: Path
    used: int
    total: int

    @property
    def share(self) -> float:
        """Used of total, from 0 to 1."""
        return self.used / self.total if self.total else 0.0


def disks(root: Path) -> list[Path]:
    """One folder for each file system below which SageMaker lets a script write, ``/dev/shm`` aside."""
    written = [root, *(root / name for name in ("output/data", "model", "checkpoints"))]
    written += [Path(os.environ.get("TMPDIR") or "/tmp"), Path(os.environ.get("HOME") or "/root")]  # noqa: S108
    return distinct(written, apart_from=[SHARED_MEMORY])


def distinct(folders: Iterable[Path], apart_from: Iterable[Path] = ()) -> list[Path]:
    """The folders that exist, the first of each file system."""
    seen = {_device(folder) for folder in apart_from}
    found = []
    for folder in folders:
        device = _device(folder)
        if device is not None and device not in seen:
            seen.add(device)
            found.append(folder)
    return found


def space(folder: Path) -> Space | None:
    """What ``df`` says: total without the part that is kept for the administrator. None where the folder is missing."""
    try:
        now = os.statvfs(str(folder))
    except OSError:
        return None
    used = (now.f_blocks - now.f_bfree) * now.f_frsize
    total = used + now.f_bavail * now.f_frsize
    return Space(folder, total if now.f_files and not now.f_favail else used, total)


def _device(folder: Path) -> int | None:
    try:
        return folder.stat().st_dev
    except OSError:
        return None
