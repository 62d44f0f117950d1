"""Starts the tracing program: ``python -I CHILD_FOLDER REQUEST.json RESULT.json``.

This folder runs in the Python interpreter of the user's environment. It uses the standard library and torch, needs
Python 3.9 or newer, and imports nothing of Sagefit. It is loaded under a package name of its own, so that it hides no
module of the user.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_NAME = "sagefit_tracer"


def _start() -> int:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _FOLDER]
    spec = importlib.util.spec_from_file_location(
        _NAME, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
    )
    assert spec is not None  # noqa: S101 - for the type checker: the file stands beside this one
    sys.modules[_NAME] = importlib.util.module_from_spec(spec)
    return int(importlib.import_module(f"{_NAME}.program").main(*map(Path, sys.argv[1:])))


if __name__ == "__main__":
    sys.exit(_start())
