"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def wait_until(check: Callable[[], Answer | None], seconds: float = 60) -> Answer:
    """The first true answer of ``check``; fails after so many seconds of false ones."""
    end = time.monotonic() + seconds
    while not (answer := check()):
        assert time.monotonic() < end, f"{seconds} s of {answer!r}"
        time.sleep(0.05)
    return answer
