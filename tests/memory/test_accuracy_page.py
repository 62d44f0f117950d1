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
        "modules/training-job/images.json",
        "modules/training-job/instances.csv",
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


def test_what_a_script_opens_is_told_with_a_cache_and_without(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("", encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text("import one", encoding="utf-8")
    for _ in range(2):  # the first time Python writes its cache, then it reads it
        opened = tmp_path.parent / f"{tmp_path.name}-opened"
        command = [sys.executable, str(ROOT / "tests" / "opened.py"), str(tmp_path), str(opened), str(script)]
        subprocess.run(command, check=True, env={"PYTHONPATH": str(tmp_path)})
        found = [Path(name).name for name in opened.read_text(encoding="utf-8").splitlines()]
        assert {*found} - {"__pycache__"} == {"one.py", "script.py"}
    assert list((tmp_path / "__pycache__").glob("one.*.pyc"))
