"""The measure of coverage: every process is seen, and what is below the floor is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from measure_coverage import PACKAGES, make_interpreter, too_low


def summary(covered: int, statements: int) -> dict[str, int]:
    return {"covered_lines": covered, "num_statements": statements}


def test_what_is_below_the_floor_is_named() -> None:
    files = {"good.py": summary(8, 10), "low.py": summary(79, 100), "empty.py": summary(0, 0)}
    report = {"totals": summary(919, 1000), "files": {name: {"summary": found} for name, found in files.items()}}
    assert too_low(report) == [
        "all files: 91.9 % of lines, 92 % wanted",
        "low.py: 79.0 % of lines, 80 % wanted",
    ]
    report["totals"] = summary(92, 100)
    files_left = {"good.py": {"summary": files["good.py"]}}
    assert too_low(report | {"files": files_left}) == []


def test_a_process_with_an_environment_of_its_own_is_measured(tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.write_text(f"[run]\nparallel = true\ndata_file = {tmp_path}/.coverage\ninclude = {PACKAGES}/*\n", "utf-8")
    python = make_interpreter(tmp_path / "python", settings)
    subprocess.run([python, "-c", "import sagefit.errors"], env={}, check=True)
    report = [sys.executable, "-m", "coverage", "report", f"--rcfile={settings}"]
    subprocess.run(
        [sys.executable, "-m", "coverage", "combine", "-q", f"--rcfile={settings}"], cwd=tmp_path, check=True
    )
    done = subprocess.run(report, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "sagefit/errors.py" in done.stdout
