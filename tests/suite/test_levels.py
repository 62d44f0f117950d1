"""Each level runs what it says, and what only the longest runs has a witness in the usual one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from levels import COLLECTED, is_of
from sagefit.paths import ROOT

TESTS = """
import subprocess
import pytest

def test_a_case():
    pass

@pytest.mark.full(witness="test_small.py::test_a_case")
def test_every_case():
    pass
"""
STARTS = """
import subprocess

def test_starts():
    assert subprocess.run(["terraform", "version"]).returncode == 0
"""


def run(folder: Path, tests: str, *options: str) -> str:
    """What a session of its own says."""
    (folder / "conftest.py").write_text('pytest_plugins = ["levels", "terraform_starts"]\n')
    (folder / "test_small.py").write_text(tests)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "COLUMNS": "200"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:timeout", "-ra", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "level", "runs"),
    [
        ((), "usual", "1 passed, 1 deselected"),
        (("-n", "1"), "usual", "1 passed"),
        (("--level", "full"), "full", "2 passed"),
        (("test_small.py::test_every_case",), "full", "1 passed"),
        (("-k", "every"), "full", "1 passed, 1 deselected"),
        (("test_small.py", "--level", "usual"), "usual", "1 passed, 1 deselected"),
    ],
    ids=["nothing", "workers", "full", "named", "by word", "named and usual"],
)
def test_a_level_runs_what_it_says(options: tuple[str, ...], level: str, runs: str, tmp_path: Path) -> None:
    said = run(tmp_path, TESTS, *options)
    assert f"level: {level} (of fast, usual, full)" in said
    assert f"{runs} in" in said.replace("=", "")


def test_starts_of_terraform_are_counted(tmp_path: Path) -> None:
    assert "Terraform was started 1 times: 1 version" in run(tmp_path, STARTS, "-n", "1")


def test_fast_starts_no_terraform(tmp_path: Path) -> None:
    said = run(tmp_path, STARTS, "--level", "fast")
    assert "a test of the level fast starts Terraform: add its file to NOT_FAST" in said
    assert "1 failed" in said


def test_what_is_left_out_has_a_witness_that_runs(request: pytest.FixtureRequest) -> None:
    """Of the tests that were collected: all of them, unless some are named."""
    collected = request.config.stash[COLLECTED]
    files = {item.nodeid.partition("::")[0] for item in collected}
    usual = [item.nodeid for item in collected if is_of(item, "usual")]
    for item in collected:
        for mark in item.iter_markers("full"):
            witness = mark.kwargs["witness"]
            assert not mark.args
            if witness.partition("::")[0] in files:
                assert any(node.startswith(witness) for node in usual), f"{item.nodeid}: no witness {witness}"


@pytest.mark.parametrize("kept", ["unchanged.json", "durations.json"])
def test_names_that_are_kept_are_those_of_every_machine(kept: str) -> None:
    """A test that is named after a folder of one machine is never known elsewhere."""
    text = (ROOT / "tests" / kept).read_text(encoding="utf-8")
    own = {str(ROOT), sys.prefix, sys.base_prefix, str(Path.home())}
    assert [folder for folder in own if f"{folder}/" in text] == []
    assert "/bin/python" not in text
