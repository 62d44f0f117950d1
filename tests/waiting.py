"""Waiting for what another process does, and what all of them were started with."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

import psutil

from sagefit.processes import running

Answer = TypeVar("Answer")


def wait_until(check: Callable[[], Answer | None], seconds: float = 60) -> Answer:
    """The first true answer of ``check``; fails after so many seconds of false ones."""
    end = time.monotonic() + seconds
    while not (answer := check()):
        assert time.monotonic() < end, f"{seconds} s of {answer!r}"
        time.sleep(0.05)
    return answer


def command_lines(between: str = " ") -> list[str]:
    """The words of each process of this machine, with ``between`` between them."""
    found = []
    for process in running():
        with contextlib.suppress(psutil.Error):
            found.append(between.join(process.cmdline()))
    return found
