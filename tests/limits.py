"""A test that hangs is ended at its limit of time, with all that it has started, and shows where each process stood.

pytest-timeout keeps the time (``timeout`` in pyproject.toml, ``@pytest.mark.timeout`` beside a test); this is what
happens then. A process that only waits for one of the test's would wait for ever if the test alone were ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_timeout
from _pytest.faulthandler import fault_handler_stderr_fd_key  # the terminal, while a test's own output is captured

from sagefit.processes import running

GRACE = 120.0  # seconds after the limit, in which a test may clean up; then its worker is ended, with its stacks
_LOOK = 60.0  # of them, for looking at processes
# Processes inherit the environment, so it says whose they are: pytest puts the test there, and its part.
CURRENT, _OWNER = "PYTEST_CURRENT_TEST", "PYTEST_OWNER_PID"
os.environ[_OWNER] = str(os.getpid())  # another session may run the same test


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """Start the time of a test."""
    began = time.time()

    def expire(_number: int, _frame: object) -> None:
        __tracebackhide__ = True
        debugging: bool = pytest_timeout.is_debugging()  # type: ignore[no-untyped-call]
        if debugging and not settings.disable_debugger_detection:
            return
        end = time.monotonic() + _LOOK
        shown = "\n\n".join([_own_stacks(), *(_stack(process, end) for process in _processes())])
        _end_processes(began)
        # A section of the report: the message is repeated in the summary, and in continuous integration whole.
        item.add_report_section(os.environ.get(CURRENT, "call").rpartition("(")[2].rstrip(")"), "processes", shown)
        pytest.fail(f"{item.nodeid} is over its limit of {settings.timeout:g} s")

    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    faulthandler.dump_traceback_later(
        settings.timeout + GRACE, exit=True, file=item.config.stash[fault_handler_stderr_fd_key]
    )
    return True


def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:  # noqa: ARG001 - the hook's own name
    """End the time of a test."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.cancel_dump_traceback_later()
    return True


def _processes() -> list[psutil.Process]:
    """All that descends from this process, and what this very part of the test has started and let go."""
    below = psutil.Process().children(recursive=True)
    return list(dict.fromkeys([*below, *_of_this_test()]))


def _of_this_test() -> Iterator[psutil.Process]:
    for process in running():
        if process.pid != os.getpid() and _is_of_this_test(process):
            yield process


def environment(process: psutil.Process) -> dict[str, str] | None:
    """The environment that a process was started with; None where it does not say."""
    try:
        return dict(process.environ())
    except (psutil.Error, OSError):
        return None


def _is_of_this_test(process: psutil.Process) -> bool | None:
    """Whether this part of the test has started a process; None where the process does not say."""
    found = environment(process)
    if found is None or CURRENT not in found or _OWNER not in found:
        return None
    return (found[_OWNER], found[CURRENT]) == (str(os.getpid()), os.environ.get(CURRENT))


def _end_processes(began: float) -> None:
    """End what the test has started; what its session shares with other tests stays."""
    for process in _processes():
        with contextlib.suppress(psutil.Error):
            own = _is_of_this_test(process)
            if own or (own is None and process.create_time() >= began):
                process.kill()


def _own_stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = [
        f"thread {names.get(number, number)}:\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()
    ]
    return "\n".join([f"process {os.getpid()}: the test", *stacks])


def _stack(process: psutil.Process, end: float) -> str:
    """Where a process stands: of Python the functions, of others what they wait for. Nothing is begun after ``end``."""
    try:
        words, status = process.cmdline(), process.status()
    except psutil.Error:
        return f"process {process.pid}: has ended"
    head = f"process {process.pid}, {status}: {' '.join(words)[:400]}"
    if words and "python" in Path(words[0]).name:
        return f"{head}\n{_python_stack(process.pid) if time.monotonic() < end else 'no stack: no time for it'}"
    with contextlib.suppress(OSError):
        return f"{head}\nwaits in {Path(f'/proc/{process.pid}/wchan').read_text() or 'nothing'}"
    return head


def _python_stack(pid: int) -> str:
    command = [str(Path(sys.executable).with_name("py-spy")), "dump", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no stack: {error}"
    return done.stdout or f"no stack: {done.stderr.strip()}"
