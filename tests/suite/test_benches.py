"""Every bench runs to its end: small, once, and without its goals, which ``make bench`` asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sagefit.paths import ROOT

BENCHES = ROOT / "tests" / "bench"
# Those of memory and of money have pages, and a test of each page runs them.
HAVE_PAGES = {"memory", "money"}


def _smoke(what: str, tmp_path: Path) -> str:
    """What a bench prints; it prints where its goals lie beside what it measured."""
    command = [sys.executable, str(BENCHES / f"bench_{what}.py"), "--smoke"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "goal" in done.stdout
    return done.stdout


def test_size(tmp_path: Path) -> None:
    assert "10 jobs on" in _smoke("size", tmp_path)


@pytest.mark.full(witness="tests/suite/test_benches.py::test_size")
@pytest.mark.parametrize(
    ("what", "words"),
    [("run", "new code: make job"), ("storage", "GB of local input"), ("review", "a real plan of 100")],
)
def test_the_others(what: str, words: str, tmp_path: Path) -> None:
    assert words in _smoke(what, tmp_path)


def test_make_bench_runs_every_one_of_them() -> None:
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nbench:")[1].split("\n\n")[0]
    listed = rule.split(" in ")[1].split(";")[0].split()
    assert {path.stem.removeprefix("bench_") for path in BENCHES.glob("bench_*.py")} == {*listed, "memory"}
    assert {*listed} >= {"size", "run", "storage", "review"}
