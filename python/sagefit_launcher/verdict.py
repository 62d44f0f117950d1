"""Decides what ended the script: a signal, the kernel, its own last words, or memory that was at its limit."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from . import patterns
from .last_words import explains_itself
from .last_words import last_words as read_last_words
from .process import Ended
from .recorder import Recorder
from .vocabulary import IO_ERROR


def judge(
    entry_point: str, ended: Ended, lines: Sequence[str], recorder: Recorder, stop_requested: bool
) -> tuple[str, str]:
    """Failure class and evidence of a script that did not end with exit code 0."""
    how = f"{entry_point} ended with exit code {ended.exit_code}"
    if ended.signal == signal.SIGKILL:
        killed = f"{how}, as after a kill (signal 9)," if ended.by_code else f"{entry_point} was killed (signal 9)"
        how = f"{killed} with the host at {recorder.at_the_end()}"
    elif ended.signal:
        number = int(ended.signal)
        how = f"{how}, as after signal {number}" if ended.by_code else f"{entry_point} was ended by signal {number}"
    if stop_requested:
        return "stopped", f"{how}, after a request to stop"
    if ended.signal == signal.SIGKILL:
        # A kill leaves no last words, so whatever was said before is about something else.
        return ("host_memory" if recorder.killed_for_memory() else "code"), how
    failure_class, said = last_words(lines)
    if failure_class == "code" and recorder.kernel_killed():
        return "host_memory", f"{how}, the kernel having killed one of its processes for memory: {said}"
    if not names_a_cause(failure_class, said) and recorder.is_full():
        # Whoever lost a worker, or was refused a page, words it in many ways.
        return "host_memory", f"{how} with the host at {recorder.at_the_end()}: {said}"
    return failure_class, f"{how}: {said}" if said else how


def names_a_cause(failure_class: str, said: str) -> bool:
    """Whether a script's last words name what ended it, and not only that something went wrong."""
    if failure_class == "code":
        return is_shown(said)
    return failure_class != "internal" or IO_ERROR.search(said.lower()) is None


def is_shown(said: str) -> bool:
    """Whether a script's last words show that its code is wrong: an error's name, or a pattern of such errors."""
    match, _ = read_last_words(patterns.load(), [said])
    return explains_itself(said) or (match is not None and match.pattern.failure_class == "code")


def last_words(lines: Sequence[str]) -> tuple[str, str]:
    """Class and evidence from the end of a log."""
    match, said = read_last_words(patterns.load(), lines)
    return (match.pattern.failure_class if match else "code"), said
