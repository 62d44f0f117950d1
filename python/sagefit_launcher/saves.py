"""What a script has written into a folder, such as that of its checkpoints, and when it last did."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

MOST = 20_000  # entries that are looked at


class Written(NamedTuple):
    """Regular files in a folder and below: how many, their bytes, and when one was last written."""

    files: int
    bytes: int
    newest: float | None  # None without a file
    name: str | None  # of that file, below the folder

    @property
    def entry(self) -> str | None:
        """Of that file the entry of the folder: a checkpoint is one file there, or one folder of files."""
        return _entry(self.name) if self.name else None


def look(folder: Path, when: Callable[[float], float] = float, without: str | None = None) -> Written:
    """Looks at the folder. Links are not followed, and what cannot be read is left out.

    ``when`` makes of a file's time, in seconds by the file system's clock, what ``newest`` is to be. The entry
    ``without`` counts, but is not the newest.
    """
    count = size = 0
    newest: float | None = None
    name: str | None = None
    for path, found in files(folder):
        count, size = count + 1, size + found.st_size
        at = when(found.st_mtime)
        if newest is None or at > newest:
            below = os.path.relpath(path, str(folder))
            if _entry(below) != without:
                newest, name = at, below
    return Written(count, size, newest, name)


def _entry(below: str) -> str:
    return below.split(os.sep, 1)[0]


def files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files below the folder, at most `MOST` entries of it, with their paths."""
    seen = 0
    for above, _, names in os.walk(str(folder)):
        for name in names:
            seen += 1
            if seen > MOST:
                return
            path = os.path.join(above, name)  # noqa: PTH118 - a Path of each file takes longer
            try:
                found = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode):
                yield path, found
