"""A test of files that have not changed since it passed is left out, except in the longest level."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sagefit.paths import ROOT
from unchanged import digest, files

pytestmark = pytest.mark.of_files(
    "tests/unchanged.py", "tests/levels.py", "tests/suite/test_unchanged.py", "requirements-dev.lock"
)

TESTS = """
import pathlib
import pytest

@pytest.mark.of_files("table.csv", "data")
@pytest.mark.parametrize("row", ["a", "b"])
def test_a_table(row):
    assert row in pathlib.Path("table.csv").read_text()

def test_something_else():
    pass
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.csv").write_text("1\n")
    (tmp_path / "table.csv").write_text("a\nb\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (tmp_path / "tests" / "conftest.py").write_text('pytest_plugins = ["levels", "unchanged"]\n')
    (tmp_path / "tests" / "test_table.py").write_text(TESTS)
    return tmp_path


def run(folder: Path, *options: str) -> str:
    """The closing line of a session of its own."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:timeout", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"=+ (.*) in [\d.]+s", done.stdout.splitlines()[-1])
    assert found, done.stdout + done.stderr
    return found[1]


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_was_shown_of_the_same_files_is_left_out(checkout: Path, workers: str) -> None:
    assert run(checkout) == "3 passed"
    assert run(checkout, "--write-proven", "-n", workers) == "3 passed"
    assert run(checkout) == "1 passed, 2 deselected"
    assert run(checkout, "--level", "full") == "3 passed"


@pytest.mark.parametrize("file", ["table.csv", "data/one.csv", "data/new.csv"])
def test_a_change_of_its_files_runs_a_test_again(checkout: Path, file: str) -> None:
    run(checkout, "--write-proven")
    with (checkout / file).open("a") as changed:
        changed.write("c\n")
    assert run(checkout) == "3 passed"


def test_what_fails_is_not_kept(checkout: Path) -> None:
    (checkout / "table.csv").write_text("a\n")
    assert run(checkout, "--write-proven") == "1 failed, 2 passed"
    assert run(checkout) == "1 failed, 1 passed, 1 deselected"


def test_files_that_are_not_there_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"of_files: gone\.csv is no file of the checkout"):
        files(["README.md", "gone.csv"], ROOT)


def test_a_part_of_a_folder_may_be_left_out(checkout: Path) -> None:
    (checkout / "data" / "two.csv").write_text("2\n")
    assert files(["data", "!data/two.csv"], checkout) == [checkout / "data/one.csv"]
    with pytest.raises(ValueError, match=r"of_files: data/three\.csv is no file of the checkout"):
        files(["data", "!data/three.csv"], checkout)


def test_what_tools_leave_behind_does_not_count(checkout: Path) -> None:
    before = digest(["data"], checkout)
    for name in (".terraform.lock.hcl", ".terraform/modules.json", "__pycache__/one.pyc"):
        (checkout / "data" / name).parent.mkdir(exist_ok=True)
        (checkout / "data" / name).touch()
    assert digest(["data"], checkout) == before
    assert files(["data/.terraform.lock.hcl"], checkout) == [checkout / "data/.terraform.lock.hcl"]


def test_names_count_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = digest(["?"], tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert digest(["?"], tmp_path) != before
