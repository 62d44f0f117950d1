"""What the end of continuous integration says of tests that fail once, twice, or cannot be tried again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import second_try

pytestmark = pytest.mark.of_files("tests/second_try.py", "tests/suite/test_second_try.py", "requirements-dev.lock")

HERE = Path(__file__).parents[1]
CONFTEST = "from second_try import pytest_collectreport, pytest_runtest_logreport, pytest_sessionfinish\n"
TESTS = """
import pathlib, pytest

def fails_once(name):
    mark = pathlib.Path(name)
    if not mark.exists():
        mark.touch()
        raise OSError(f"{{name}} was not there yet\\nand more")

def test_passes():
    pass

@pytest.mark.xdist_group("group")
@pytest.mark.parametrize("name", {once})
def test_once(name):
    fails_once(name)

@pytest.fixture
def broken():
    fails_once("fixture")

{tests}
"""
TWICE = "def test_twice():\n    assert 1 + 1 == 3\n"
SETUP = "def test_setup(broken):\n    pass\n"


def judged(folder: Path, once: list[str], tests: str = "") -> tuple[int, list[str]]:
    """The exit code and the closing lines of a run and its second try."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group\n")
    (folder / "test_it.py").write_text(TESTS.format(once=once, tests=tests))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    environment = kept | {"PYTHONPATH": str(HERE), second_try.VARIABLE: str(folder / "made" / "failures.json")}
    first = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", "--dist", "loadgroup"]
    subprocess.run(first, cwd=folder, env=environment, check=False, capture_output=True)
    again = [sys.executable, str(HERE / "second_try.py"), environment[second_try.VARIABLE]]
    done = subprocess.run(again, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    return done.returncode, lines[max((number + 1 for number, line in enumerate(lines) if not line), default=0) :]


def test_what_fails_once_is_unstable_and_green(tmp_path: Path) -> None:
    code, said = judged(tmp_path, ["a", "b@c $HOME 'd'"], SETUP)
    assert code == 0
    assert sorted(said) == [
        "green: 1 passed, 3 unstable, 0 failed twice",
        "unstable, failed once: test_it.py::test_once[a] - OSError: a was not there yet",
        "unstable, failed once: test_it.py::test_once[b@c $HOME 'd'] - OSError: b@c $HOME 'd' was not there yet",
        "unstable, failed once: test_it.py::test_setup - OSError: fixture was not there yet",
    ]
    assert said[-1].startswith("green: ")


def test_what_fails_twice_is_red(tmp_path: Path) -> None:
    code, said = judged(tmp_path, ["a"], TWICE)
    assert code == 1
    assert said == [
        "failed twice: test_it.py::test_twice - assert (1 + 1) == 3",
        "unstable, failed once: test_it.py::test_once[a] - OSError: a was not there yet",
        "red: 1 passed, 1 unstable, 1 failed twice",
    ]


@pytest.mark.full(witness="tests/suite/test_second_try.py::test_what_fails_twice_is_red")
def test_more_than_three_unstable_tests_are_red(tmp_path: Path) -> None:
    code, said = judged(tmp_path, ["a", "b", "c", "d"])
    assert code == 1
    assert said[-1] == "red: 1 passed, 4 unstable (more than 3 is red), 0 failed twice"


@pytest.mark.full(witness="tests/suite/test_second_try.py::test_what_fails_twice_is_red")
@pytest.mark.parametrize("tests", ["import nothing_like_it", "def test_leaves():\n    pytest.exit('enough')\n"])
def test_a_run_that_did_not_end_is_red(tests: str, tmp_path: Path) -> None:
    code, said = judged(tmp_path, ["a"], tests)
    assert code == 1
    assert "red: the tests did not run to their end, so there is no second try" in said


@pytest.mark.full(witness="tests/suite/test_second_try.py::test_what_fails_twice_is_red")
def test_too_many_are_not_tried_again(tmp_path: Path) -> None:
    code, said = judged(tmp_path, [f"n{number}" for number in range(21)])
    assert (code, said) == (1, ["red: 21 tests failed, too many for a second try"])


def test_without_a_record_it_is_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert second_try.main([str(tmp_path / "nothing.json")]) == 1
    assert capsys.readouterr().out.startswith("red: which tests failed is not known (")
