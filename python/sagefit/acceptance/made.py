"""What the suite has begun to make, in a file: whatever ends it, a later command takes that down."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from sagefit.paths import private_folder


class Made:
    """Names of what was begun and is not yet taken down, in the order of their beginning."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "made.json"
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """What is left."""
        if not self._path.exists():
            return []
        found: list[str] = json.loads(self._path.read_text(encoding="utf-8"))
        return found

    def begin(self, name: str) -> None:
        """Note before it is begun, so that half of it is noted too."""
        with self._lock:
            self._write([*(each for each in self.names if each != name), name])

    def gone(self, name: str) -> None:
        """Forget what is taken down."""
        with self._lock:
            self._write([each for each in self.names if each != name])

    def _write(self, names: list[str]) -> None:
        private_folder(self._path.parent)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(names) + "\n", encoding="utf-8")
        new.replace(self._path)
