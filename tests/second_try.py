"""What failed in a run of the tests is run once more, by itself, one after the other: red is what fails twice.

As part of pytest it writes down what failed, into the file that ``TEST_FAILURES`` names. As a program, after such a
run, it tries again: ``python tests/second_try.py FILE``. A test that failed once is listed as unstable: its cause is to
be mended, and more than a few of them are red.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "TEST_FAILURES"
MOST_UNSTABLE = 3
MOST_TRIED = 20  # of more than this, chance is not the cause
_FAILED: dict[str, str] = {}  # what failed in this session, and its first error
_OTHERS: dict[str, str] = {}  # what could not be collected
_PASSED: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the first error of a test that failed, in its set-up or tear-down, too."""
    if report.failed:
        _FAILED.setdefault(_identifier(report.nodeid), _error(report))
    elif report.passed and report.when == "call":
        _PASSED.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Keep what could not be collected: no test of it can be tried again."""
    if report.failed:
        _OTHERS.setdefault(report.nodeid, _error(report))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write down how the session ended; the processes of pytest-xdist leave that to the one that started them."""
    target = os.environ.get(VARIABLE)
    if target and not hasattr(session.config, "workerinput"):
        whole = int(exitstatus) == pytest.ExitCode.TESTS_FAILED and not _OTHERS
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"whole": whole, "passed": len(_PASSED), "failed": _FAILED}), encoding="utf-8")


def add_left(things: list[str]) -> None:
    """Write down what the session has left behind, too: no second try mends that."""
    path = Path(os.environ.get(VARIABLE) or os.devnull)
    if path.is_file():
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"left": things}), encoding="utf-8")


def _identifier(node: str) -> str:
    """The name of a test without the group that pytest-xdist puts behind it."""
    return re.sub(r"@[^@\]]*$", "", node)


def _error(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else str(report.longrepr)).strip().splitlines() or ["no words"]
    return str(lines[0])


def main(arguments: list[str]) -> int:
    """Try again what failed, and say what that means. The exit code is 0 when the tests count as green."""
    try:
        session = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    except (IndexError, OSError, ValueError) as fault:
        print(f"red: which tests failed is not known ({fault})")
        return 1
    failed: dict[str, str] = session["failed"]
    if left := session.get("left"):
        print(f"red: the tests left something behind: {', '.join(left)}")
        return 1
    if not session["whole"] or not failed:
        print("red: the tests did not run to their end, so there is no second try")
        return 1
    if len(failed) > MOST_TRIED:
        print(f"red: {len(failed)} tests failed, too many for a second try")
        return 1
    unstable: dict[str, str] = {}
    for number, (test, error) in enumerate(failed.items(), 1):
        print(f"\nsecond try {number} of {len(failed)}: {test}", flush=True)
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", test]
        if subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode == 0:
            unstable[test] = error
    twice = {test: error for test, error in failed.items() if test not in unstable}
    print()
    for words, tests in (("failed twice:", twice), ("unstable, failed once:", unstable)):
        for test, error in tests.items():
            print(f"{words} {test} - {error}")
    red = bool(twice) or len(unstable) > MOST_UNSTABLE
    more = f" (more than {MOST_UNSTABLE} is red)" if len(unstable) > MOST_UNSTABLE else ""
    counts = f"{session['passed']} passed, {len(unstable)} unstable{more}, {len(twice)} failed twice"
    print(f"{'red' if red else 'green'}: {counts}")
    return int(red)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
