"""The published costs of running out of memory are those of the planner as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sagefit.paths import ROOT
from unchanged import files

# All that the figures are made of.
FILES = (
    *("docs/money.md", "jobs", "modules/training-job", "tests/accuracy", "tests/bench", "tests/job_files.py"),
    *("python/sagefit_launcher/__init__.py", "python/sagefit_launcher/__main__.py"),
    *(f"python/sagefit/{room}" for room in ("*.py", "catalog", "job", "memory", "planning")),
)


@pytest.mark.of_files(*FILES)
def test_the_money_page_is_up_to_date(tmp_path: Path) -> None:
    script, opened = ROOT / "tests" / "bench" / "bench_money.py", tmp_path / "opened"
    command = [sys.executable, str(ROOT / "tests" / "opened.py"), str(ROOT), str(opened), str(script), "--check"]
    # Elsewhere than in the checkout: the planner looks around where it is started.
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    ours = {Path(name) for name in opened.read_text(encoding="utf-8").splitlines() if "/.venv/" not in name}
    assert ROOT / "docs" / "money.md" in ours
    assert ours - set(files(FILES, ROOT)) == set()
