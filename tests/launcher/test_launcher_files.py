"""Tests that are left out while the launcher does not change import nothing else of Sagefit."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MARKED = [file for file in HERE.glob("test_*.py") if "OF_FILES, " in (text := file.read_text()) or "= OF_FILES" in text]
DECIDE = {"sagefit.paths", "sagefit_launcher", "ship_launcher"}
LIBRARIES = {"_pytest", "hypothesis", "psutil", "pytest"}


def imports(file: Path) -> set[str]:
    """The modules that a file imports, those of Sagefit in full."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name if name.startswith("sagefit.") else name.split(".")[0] for name in found}


@pytest.mark.parametrize("file", [*MARKED, HERE / "conftest.py", HERE / "kernel.py"], ids=lambda file: file.stem)
def test_what_they_import_decides_whether_they_run(file: Path) -> None:
    assert imports(file) - sys.stdlib_module_names <= DECIDE | LIBRARIES


def test_most_of_what_runs_in_a_container_is_marked() -> None:
    started = {
        file.stem
        for file in HERE.glob("test_*.py")
        if re.search(r"^from .conftest .*Container", file.read_text(), re.M)
    }
    assert started - {file.stem for file in MARKED} == {
        f"test_launcher_{name}" for name in ("failures", "growth", "portable")
    }
