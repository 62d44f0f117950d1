"""How this process ends at a signal: Ctrl-C (SIGINT), SIGTERM and SIGHUP do the same, with three exit codes.

Each signal raises KeyboardInterrupt in the main thread, so the code that cleans up after Ctrl-C runs for all three.
Only the exit codes differ: 130, 143 and 129, as a shell reports a process that a signal has ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BASE = 128  # what a shell adds to the number of a signal

_received: int = signal.SIGINT
_terminals: list[int] = []  # streams that end with the terminal


def listen() -> None:
    """Let each signal raise KeyboardInterrupt from now on, except signals that the parent process set to be ignored.

    ``nohup`` makes its command ignore SIGHUP, and a shell script makes commands with ``&`` ignore SIGINT.
    """
    _terminals[:] = [stream for stream in (1, 2) if _is_terminal(stream)]
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)


def exit_code() -> int:
    """The exit code of the command after the last signal."""
    return _BASE + _received


@contextlib.contextmanager
def heard(hear: Callable[[int], None]) -> Iterator[None]:
    """Inside the context, pass the number of each signal to ``hear``; no exception is raised unless ``hear`` raises it.

    Signals that would not raise KeyboardInterrupt stay as they are. Outside the main thread nothing changes, because
    Python delivers signals to the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: Any) -> None:
        _remember(number)
        hear(number)

    before = {number: signal.getsignal(number) for number in ENDING}
    ours = {number: old for number, old in before.items() if old in (_raise, signal.default_int_handler)}
    for number in ours:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in ours.items():
            signal.signal(number, old)


def leave_to_parent() -> None:
    """Restore signals in a forked child of a process that listens: ignore Ctrl-C, and let the others end it at once.

    A pool ends its workers with SIGTERM. An exception could come while a worker holds a lock that others wait for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is _raise:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _frame: Any) -> None:
    _remember(number)
    raise KeyboardInterrupt


def _remember(number: int) -> None:
    global _received
    _received = number
    if number == signal.SIGHUP:  # nobody reads the output now, and a write to a lost terminal would fail
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for stream in _terminals:
            os.dup2(nowhere, stream)
        os.close(nowhere)


def _is_terminal(stream: int) -> bool:
    try:
        return os.isatty(stream)
    except OSError:
        return False
