"""The limit of time of a test, on tests that really hang."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import limits
from waiting import command_lines

pytestmark = pytest.mark.of_files(
    *("tests/limits.py", "tests/waiting.py", "tests/suite/test_limits.py"),
    *("python/sagefit/processes.py", "requirements-dev.lock"),
)

CONFTEST = """
import limits
from limits import pytest_timeout_cancel_timer, pytest_timeout_set_timer
limits.GRACE = {grace}
"""
HANGS = """
import signal, subprocess, sys, time, pytest

WAIT = "import time\\ndef waits_for_ever():\\n    print(1, flush=True)\\n    time.sleep(600)\\n"
WAIT += "waits_for_ever()  # {0} " + __file__

@pytest.fixture(scope="session")
def shared():
    with subprocess.Popen([sys.executable, "-c", WAIT.format("shared")], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()

def test_before(shared):
    pass

@pytest.mark.timeout(5)
def test_hangs(shared):
    # Its end waits for the process: if the process were not ended, the test would hang once more.
    with subprocess.Popen([sys.executable, "-c", WAIT.format("own")], stdout=subprocess.PIPE) as process:
        process.stdout.read()

def test_after(shared):
    assert shared.poll() is None
"""
DEAF = """
import signal, time, pytest

@pytest.mark.timeout(3)
def test_hears_nothing():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(600)

def test_after():
    pass
"""


def run(folder: Path, tests: str, *options: str, grace: float = limits.GRACE) -> subprocess.CompletedProcess[str]:
    """A session of pytest on tests, of which one has a limit of seconds."""
    (folder / "conftest.py").write_text(CONFTEST.format(grace=grace))
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 300\n")
    (folder / "test_it.py").write_text(tests)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
    )


def may_look() -> bool:
    """Whether this user may look into processes that are not its children."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return os.geteuid() == 0 or (sys.platform == "linux" and (not scope.exists() or scope.read_text() == "0\n"))


@pytest.mark.parametrize(
    "workers",
    [
        "1",
        pytest.param(
            "0",
            marks=pytest.mark.full(
                witness="tests/suite/test_limits.py::test_a_test_that_hangs_is_ended_with_the_stacks_of_its_processes[1]"
            ),
        ),
    ],
)
def test_a_test_that_hangs_is_ended_with_the_stacks_of_its_processes(workers: str, tmp_path: Path) -> None:
    done = run(tmp_path, HANGS, "-n", workers)
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout  # what the session shares was left alone
    assert "test_it.py::test_hangs is over its limit of 5 s" in done.stdout
    assert "Captured processes call" in done.stdout
    assert "thread MainThread" in done.stdout
    assert "process.stdout.read()" in done.stdout
    shown = done.stdout.count("waits_for_ever (<string>") if may_look() else done.stdout.count("no stack")
    assert shown == 2
    assert not [line for line in command_lines() if str(tmp_path) in line]


@pytest.mark.full(
    witness="tests/suite/test_limits.py::test_a_test_that_hangs_is_ended_with_the_stacks_of_its_processes[1]"
)
def test_a_test_that_hears_no_signal_is_ended_with_its_worker(tmp_path: Path) -> None:
    done = run(tmp_path, DEAF, "-n", "1", grace=1)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "test_hears_nothing" in done.stdout
    assert "in test_hears_nothing" in done.stderr
