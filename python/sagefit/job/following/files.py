"""What a script may read while it is followed: text files of its own folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_CODE = "/opt/ml/code/"
"""Where the folder lies in the container."""


class Looked(NamedTuple):
    """A file that was read, with its time of change and size; both are -1 where there is none any more."""

    path: str
    changed: int
    size: int


class Files:
    """Text files below ``folder``; ``looked`` are those that were read, so that others know when to read again."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._top: set[str] | None = None
        self.looked: list[Looked] = []

    def may_have(self, module: str) -> bool:
        """Whether a module of this name may be there, without a look at each: most that scripts import are not."""
        if self._top is None:
            try:
                self._top = set(os.listdir(self._folder)) if self._folder is not None else set()  # noqa: PTH208 - speed
            except OSError:
                self._top = set()
        first = module.partition(".")[0]
        return first in self._top or f"{first}.py" in self._top

    def read(self, name: str, longest: int) -> str | None:
        """The text of a file of at most ``longest`` bytes, by its path in the folder; None where there is none."""
        if self._folder is None or not name or "\0" in name:
            return None
        folder = Path(self._folder).resolve()
        try:
            path = (folder / name.removeprefix(_CODE)).resolve()
            if not path.is_relative_to(folder) or not path.is_file() or path.stat().st_size > longest:
                return None
            self.looked.append(looked(str(path)))
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None


def looked(path: str) -> Looked:
    """How a file is now."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return Looked(path, -1, -1)
    return Looked(path, found.st_mtime_ns, found.st_size)
