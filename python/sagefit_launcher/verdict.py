"""Decides what ended the script: a signal, the kernel, or its own last words."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from . import patterns
from .last_words import last_words as read_last_words
from .process import Ended
from .recorder import Recorder


def judge(
    entry_point: str, ended: Ended, lines: Sequence[str], recorder: Recorder, stop_requested: bool
) -> tuple[str, str]:
    """Failure class and evidence of a script that did not end with exit code 0."""
    how = f"{entry_point} ended with exit code {ended.exit_code}"
    if ended.signal == signal.SIGKILL:
        how = f"{entry_point} was killed (signal 9) with the host at {recorder.at_the_end()}"
    elif ended.signal:
        how = f"{entry_point} was ended by signal {int(ended.signal)}"
    if stop_requested:
        return "stopped", f"{how}, after a request to stop"
    if ended.signal == signal.SIGKILL:
        # A kill leaves no last words, so whatever was said before is about something else.
        return ("host_memory" if recorder.killed_for_memory() else "code"), how
    failure_class, said = last_words(lines)
    if failure_class == "code" and recorder.kernel_killed():
        return "host_memory", f"{how}, the kernel having killed one of its processes for memory: {said}"
    return failure_class, f"{how}: {said}" if said else how


def last_words(lines: Sequence[str]) -> tuple[str, str]:
    """Class and evidence from the end of a log."""
    match, said = read_last_words(patterns.load(), lines)
    return (match.pattern.failure_class if match else "code"), said
