"""Weighs what the log says against what the launcher saw: full file systems, and a network that is not there."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence

from .process import Ended
from .recorder import Recorder
from .volumes import Space

ON_LEAK, STOP = "SAGEFIT_ON_LEAK", "stop"
FULL = 0.9  # this share and more: what was to come next, a batch or a checkpoint, did not fit
_UNREACHABLE = re.compile(
    r"name resolution|Name or service not known|NameResolutionError|nodename nor servname"
    r"|Could not resolve host|Failed to resolve|Network is unreachable|No route to host"
    r"|Max retries exceeded with url|ConnectTimeout|Failed to establish a new connection"
    r"|Could not connect to the endpoint URL|Unable to locate credentials"
    r"|couldn't connect to 'https?://|find the requested files in the (local|disk) cache"
    r"|outgoing traffic has been disabled|getaddrinfo"
)
_OF_ANOTHER_PROGRAM = "CalledProcessError"  # Python's words for it; its own are before
_ITS_WORDS = 40  # lines


def weigh(failure_class: str, text: str, ended: Ended, recorder: Recorder) -> tuple[str, str]:
    """Class and evidence once more, knowing how full disks and ``/dev/shm`` were shortly before the end."""
    shared, disk = recorder.shared_memory(), recorder.fullest_disk()
    shared_full = shared is not None and shared.share >= FULL
    if ended.signal == signal.SIGBUS and failure_class != "stopped" and shared_full:
        failure_class = "shared_memory"
    elif failure_class == "disk" and shared_full and not (disk and disk.share >= FULL):
        failure_class = "shared_memory"  # no space was left, but on this file system
    full = {"shared_memory": shared, "disk": disk}.get(failure_class)
    return failure_class, f"{text}; {_words(full)}" if full and full.share >= FULL else text


def weigh_growth(failure_class: str, text: str, recorder: Recorder) -> tuple[str, str]:
    """Class and evidence once more, where the job takes memory that grew all the time for a fault of its script.

    A larger host would only delay the end. But data that a script keeps as it reads on grows in the same way, until it
    is at its end, and nobody can tell the two apart from outside. So the job has to ask for it.
    """
    if failure_class != "host_memory" or os.environ.get(ON_LEAK, "").strip().lower() != STOP:
        return failure_class, text
    grown = recorder.growth()
    return ("code", f"a leak: {grown}; {text}") if grown else (failure_class, text)


def network_hint(said: str, lines: Sequence[str]) -> str:
    """What to know about a failure in a job without network; nothing when it is about something else."""
    before = lines[-_ITS_WORDS:] if _OF_ANOTHER_PROGRAM in said else ()
    if not any(_UNREACHABLE.search(line) for line in [said, *before]):
        return ""
    return (
        "the job has network_isolation true, so its container reaches no network, no model hub and no AWS service "
        "(put what it needs into inputs or the image, or set resources.network_isolation: false)"
    )


def _words(filled: Space) -> str:
    gib = 1024**3
    return f"{filled.path} was {filled.share:.0%} full ({filled.used / gib:.2f} of {filled.total / gib:.2f} GiB)"
