"""Who is at work on a stack: one command at a time, and the others wait and are told for whom.

A command holds the lock of its stack from its first use of Terraform to its last, so that what it applies is what it
has planned. The lock is a file that is locked (``flock``), and Terraform inherits it: where a command was killed and
its Terraform goes on, the stack is still held, and is free at the moment when the last of them ends, however that was.
It is about one machine and one checkout; between machines the lock of the state speaks, which is Terraform's own.

The file also says what was begun: which Terraform commands have not ended well since the last one that did. What of
them may have been left, such as a lock of the state, can be told by it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from sagefit.console import err
from sagefit.paths import private_folder
from sagefit.processes import Identity, running

_PAUSE = 0.2  # seconds between two looks at a lock that somebody holds
_KEPT = 20  # commands that did not end well
_PROVIDER = "terraform-provider-"  # how programs that Terraform starts are called


@dataclass(frozen=True)
class Begun:
    """A Terraform command: its process, and when it ended (seconds since 1970), where anybody was there to see it."""

    process: Identity
    ended: float | None = None


@dataclass(frozen=True)
class Note:
    """What the file of a lock says: the command at work, since when (seconds since 1970), and what was begun."""

    command: str
    process: Identity
    since: float
    begun: tuple[Begun, ...] = ()


class Work:
    """A stack that this process holds."""

    def __init__(self, number: int, note: Note) -> None:
        self.number = number  # of the open file; Terraform inherits it
        self.note = note
        self._write()

    def begin(self, terraform: int) -> None:
        """Note that a Terraform command runs."""
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended before one could look
            self._keep(*self.note.begun, Begun(Identity.of(terraform)))

    def end(self, terraform: int, *, forget: bool) -> None:
        """Note that it has ended; with ``forget`` nothing can be left of it."""
        others = [begun for begun in self.note.begun if begun.process.pid != terraform or begun.ended]
        ended = [replace(begun, ended=time.time()) for begun in self.note.begun if begun not in others and not forget]
        self._keep(*others, *ended)

    def settle(self) -> None:
        """Note that nothing is left of any command: one has had the lock of the state, and given it back."""
        self._keep()

    def _keep(self, *begun: Begun) -> None:
        self.note = replace(self.note, begun=begun[-_KEPT:])
        self._write()

    def _write(self) -> None:
        text = json.dumps(asdict(self.note)).encode()
        os.pwrite(self.number, text, 0)  # readers ask for no lock: what they read is whole or does not parse
        os.ftruncate(self.number, len(text))


_held: dict[tuple[Path, int], Work] = {}  # by thread: a second one waits like a second process


@contextlib.contextmanager
def at_work(file: Path, stack: str) -> Iterator[Work]:
    """Hold ``stack``, whose lock is ``file``; whoever holds it now is waited for. May be nested."""
    mine = (file, threading.get_ident())
    if mine in _held:
        yield _held[mine]
        return
    private_folder(file.parent)
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait(number, stack)
        _held[mine] = Work(number, Note(_typed(), Identity.of(), time.time(), _read(number).begun))
        yield _held[mine]
    finally:
        _held.pop(mine, None)
        os.close(number)


def _wait(number: int, stack: str) -> None:
    said = None
    while not _taken(number):
        note = _read(number)
        if (words := _told(note)) != said:
            err.print(f"{stack}: {words}; waiting for it", markup=False, soft_wrap=True)
            said = words
        _end_orphans(note)
        time.sleep(_PAUSE)


def _taken(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _told(note: Note) -> str:
    """Who is at work, for people."""
    since = f"{datetime.fromtimestamp(note.since):%H:%M:%S}"
    if note.process.process():
        return f"{note.command} (process {note.process.pid}) is at work on it since {since}"
    if running := _running(note):
        return f"Terraform (process {running.pid}) goes on with {note.command}, begun at {since}"
    return "somebody is at work on it"


def _running(note: Note) -> psutil.Process | None:
    found = (begun.process.process() for begun in note.begun if not begun.ended)
    return next(filter(None, found), None)


def _end_orphans(note: Note) -> None:
    """End providers whose Terraform was killed: they do not notice, and inherited the lock."""
    if note.process.process() or _running(note):
        return
    sessions = {begun.process.pid: begun.process for begun in note.begun if not begun.ended}
    for process in running():
        with contextlib.suppress(OSError, psutil.Error):
            terraform = sessions.get(os.getsid(process.pid))
            if terraform is None or not process.name().startswith(_PROVIDER):
                continue
            if not Identity.of(process.pid).is_older_than(terraform):
                process.send_signal(signal.SIGKILL)


def _read(number: int) -> Note:
    """What the file says; where that is nothing, as with a lock that is new, a note about nobody."""
    try:
        found: dict[str, Any] = json.loads(os.pread(number, os.fstat(number).st_size, 0))
        begun = (Begun(Identity(**each["process"]), each["ended"]) for each in found["begun"])
        return Note(found["command"], Identity(**found["process"]), found["since"], tuple(begun))
    except (ValueError, LookupError, TypeError):
        return Note("", Identity(0, 0), time.time())


def _typed() -> str:
    """The command of this process, as it was typed."""
    return shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "sagefit"), *sys.argv[1:]])
