"""Run a script, and write which files of a folder it opens: ``python tests/opened.py FOLDER LIST SCRIPT [ARGUMENT...]``

Modules that Python reads from its cache, or writes there (``a.cpython-311.pyc.139957``), count as their sources.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Run it, in this process."""
    folder, kept, script = sys.argv[1:4]
    opened: set[str] = set()

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
            path = str(Path(arguments[0]).absolute())
            if path.startswith(f"{folder}/"):
                opened.add(path)

    sys.addaudithook(hear)
    sys.argv[:] = sys.argv[3:]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        Path(kept).write_text("\n".join(sorted({source(path) for path in opened})), encoding="utf-8")


def source(path: str) -> str:
    """The source of a file of Python's cache, or the path itself."""
    cached = re.sub(r"(?<=\.pyc)\.\d+$", "", path)
    return importlib.util.source_from_cache(cached) if cached.endswith(".pyc") else path


if __name__ == "__main__":
    main()
