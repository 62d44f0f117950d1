"""How this process ends when it is asked to: Ctrl-C (SIGINT), SIGTERM and SIGHUP are one thing with three exit codes.

Each of them raises KeyboardInterrupt in the main thread, so that what cleans up after Ctrl-C does so for the others.
The exit code tells them apart: 130, 143 and 129, as a shell reports a process that a signal has ended.
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
_terminals: list[int] = []  # streams that are lost when the terminal is


def listen() -> None:
    """From now on each of the signals raises KeyboardInterrupt, but for those that whoever started us ignores.

    ``nohup`` ignores SIGHUP, and a shell script SIGINT for what it starts with ``&``.
    """
    _terminals[:] = [stream for stream in (1, 2) if _is_terminal(stream)]
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)


def exit_code() -> int:
    """What the command ends with after the signal that came last."""
    return _BASE + _received


@contextlib.contextmanager
def heard(hear: Callable[[int], None]) -> Iterator[None]:
    """While inside, ``hear`` gets the number of each signal, and nothing is raised unless it raises it.

    Signals that would not raise KeyboardInterrupt are left as they are; so is everything outside of the main thread,
    which Python does not tell of signals.
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
    """In a process that was forked from one that listens: Ctrl-C is its parent's, and the others end it at once.

    An exception in a worker of a pool, which is ended by SIGTERM, may come while it holds a lock that others wait for.
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
    if number == signal.SIGHUP:  # nobody reads any more, and a word to a lost terminal would be an error
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for stream in _terminals:
            os.dup2(nowhere, stream)
        os.close(nowhere)


def _is_terminal(stream: int) -> bool:
    try:
        return os.isatty(stream)
    except OSError:
        return False
