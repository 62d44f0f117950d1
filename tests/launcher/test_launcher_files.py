"""Tests that are left out while the launcher does not change import nothing else of Sagefit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imported import imports

HERE = Path(__file__).parent
MARKED = [file for file in HERE.glob("test_*.py") if "\npytestmark = " in file.read_text()]
DECIDE = {"sagefit.paths", "sagefit_launcher", "ship_launcher"}
MORE = {"test_launcher_failures": {"sagefit.failures"}, "test_launcher_growth": {"sagefit.running.reports"}}
LIBRARIES = {"_pytest", "hypothesis", "psutil", "pytest"}


@pytest.mark.parametrize("file", [*MARKED, HERE / "conftest.py", HERE / "kernel.py"], ids=lambda file: file.stem)
def test_what_they_import_decides_whether_they_run(file: Path) -> None:
    assert imports(file) <= DECIDE | MORE.get(file.stem, set()) | LIBRARIES


def test_most_of_what_runs_in_a_container_is_marked() -> None:
    started = {
        file.stem
        for file in HERE.glob("test_*.py")
        if re.search(r"^from .conftest .*Container", file.read_text(), re.M)
    }
    assert started - {file.stem for file in MARKED} == {"test_launcher_portable"}
