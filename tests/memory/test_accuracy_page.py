"""The published figures are those that the code has now."""

import subprocess
import sys
from pathlib import Path

import pytest

from sagefit.paths import ROOT
from unchanged import files

# All that the figures are made of.
FILES = (
    *(
        "docs/accuracy.md",
        "modules/training-job/limits.json",
        "tests/accuracy",
        "tests/bench/bench_memory.py",
        "tests/job_files.py",
    ),
    *("python/sagefit_launcher/__init__.py", "python/sagefit_launcher/__main__.py"),
    *(f"python/sagefit/{room}" for room in ("*.py", "catalog", "job", "memory", "planning")),
)


@pytest.mark.of_files(*FILES)
def test_the_accuracy_page_and_the_bounds_are_up_to_date(tmp_path: Path) -> None:
    script, opened = ROOT / "tests" / "bench" / "bench_memory.py", tmp_path / "opened"
    command = [sys.executable, str(ROOT / "tests" / "opened.py"), str(ROOT), str(opened), str(script), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    ours = {Path(name) for name in opened.read_text(encoding="utf-8").splitlines() if "/.venv/" not in name}
    assert ROOT / "docs" / "accuracy.md" in ours
    assert ours - set(files(FILES, ROOT)) == set()
