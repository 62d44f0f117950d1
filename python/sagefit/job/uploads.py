"""Which files of a file or folder on this machine are uploaded, and which must not be.

Patterns are those of Terraform's ``fileset``, which uploads what they do not leave out.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sagefit.job.key import Key
from sagefit.job.left_out import LeftOut, pattern_of
from sagefit.job.secrets import secret_file

MOST_FILES = 1000
"""Of one upload; ``modules/training-job/state-machine.tf`` refuses more."""

_MOST_SEEN = 100_000  # entries of a folder


@dataclass(frozen=True)
class Upload:
    """A file or folder that a job uploads: local data, or code, from which ``always`` excludes files.

    ``written`` is its path as the job file has it at ``field``; ``exclude`` and ``allowed`` are the lists beside it.
    ``allowed`` names files that look like secrets but are none. Files of the name ``rendered`` are no code either.
    """

    what: str
    field: Key
    written: str
    path: Path
    exclude: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    rendered: str = ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Everything that leaves files out."""
        return (*self.always, *([f"**/{self.rendered}"] if self.rendered else []), *self.exclude)

    @property
    def is_code(self) -> bool:
        """Whether it is code."""
        return bool(self.always)

    @property
    def knob(self) -> Key:
        """Where ``exclude`` and ``allow_sensitive`` stand."""
        return self.field[:-1] if self.is_code else self.field

    def files(self) -> list[Path]:
        """The files that are uploaded, sorted. Links to folders are not followed."""
        return shipped(self.path, self.patterns) if self.path.is_dir() else [self.path]

    def look(self) -> Look:
        """Look through them. Jobs of one process share the look at a folder that they share."""
        found = look(self.path, (*self.always, *self.exclude))
        return found.without(self.rendered) if self.rendered else found

    def name(self, path: Path) -> str:
        """The path of one of them in the upload, as patterns and ``allowed`` have it."""
        return path.name if path == self.path else path.relative_to(self.path).as_posix()


@dataclass(frozen=True)
class Kind:
    """A kind of folder that is neither data nor code of a job: known by its name, or by a file in it."""

    what: str
    name: str = ""
    file: str = ""

    def pattern(self, folder: str) -> str:
        """What leaves ``folder`` out."""
        return f"**/{self.name}/**" if self.name else f"{pattern_of(folder)}/**"


FOREIGN = (
    Kind("a Git repository", name=".git"),
    Kind("Terraform's own folder", name=".terraform"),
    Kind("a Python virtual environment", file="pyvenv.cfg"),
)


@dataclass(frozen=True)
class Found:
    """A folder of one of these kinds, by its path in the upload, and the bytes of it that are uploaded."""

    kind: Kind
    folder: str
    size: int


@dataclass
class Look:
    """What a look at the upload ``root`` found, by paths in it. Others may share it, so nobody changes it.

    ``links`` are all links; ``files`` the bytes of each file, those that links lead to included; ``special`` what is
    neither file nor folder, with its kind; ``foreign`` folders whose files are not among ``files``; ``seen`` what was
    read.
    """

    root: Path
    links: list[str] = field(default_factory=list)
    foreign: list[Found] = field(default_factory=list)
    special: list[tuple[str, str]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    @cached_property
    def secrets(self) -> dict[str, str]:
        """The files that hold credentials or a state, by their path or the one that a link leads to: what each is."""
        folder, links = self.root if self.root.is_dir() else self.root.parent, set(self.links)
        real, found = folder.resolve(), {}
        for name in sorted(self.files):
            paths = [f"{folder}/{name}", str((folder / name).resolve()) if name in links else f"{real}/{name}"]
            if what := next(filter(None, map(secret_file, dict.fromkeys(paths))), None):
                found[name] = what
        return found

    def without(self, name: str) -> Look:
        """The same without files of this name, in whatever folder."""
        if name not in self._names:
            return self

        def others(paths: Iterable[str]) -> list[str]:
            return [path for path in paths if path.rpartition("/")[2] != name]

        special, kept = dict(self.special), set(others([*self.files, *self.links, *dict(self.special)]))
        return replace(
            self,
            links=others(self.links),
            special=[(path, special[path]) for path in others(special)],
            files={path: size for path, size in self.files.items() if path in kept},
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(path.rpartition("/")[2] for path in (*self.files, *self.links, *dict(self.special)))


def shipped(root: Path, exclude: Iterable[str]) -> list[Path]:
    """The files of the folder ``root`` that are uploaded, sorted. Links to folders are not followed."""
    return sorted(root / name for name, _ in _files(root, "", LeftOut(exclude)))


def look(root: Path, exclude: Iterable[str]) -> Look:
    """Look once through the uploaded files of ``root``, level by level, so that files near ``root`` come first.

    Links to folders and what is left out are not followed. ``root`` itself is not foreign: the job file names it.
    What was found in this process is found again while no folder changes.
    """
    if not root.is_dir():
        return Look(root, files={root.name: root.stat().st_size})
    key, now = (root, tuple(exclude)), time.time()
    if (known := _LOOKS.get(key)) and known.stamps == _stamps(known.look):
        return known.look
    found = _look(root, key[1])
    stamps = _stamps(found)
    # What changes within the tick of a clock leaves no trace: so Git's index takes such times for unknown, too.
    if all(changed < (now - _SETTLED) * 1e9 for *_, changed in stamps):
        _LOOKS[key] = _Known(found, stamps)
        while len(_LOOKS) > _MOST_LOOKS:
            del _LOOKS[next(iter(_LOOKS))]
    return found


class _Known(NamedTuple):
    look: Look
    stamps: list[tuple[int, int, int]]


_LOOKS: dict[tuple[Path, tuple[str, ...]], _Known] = {}
_MOST_LOOKS = 16
_SETTLED = 2  # seconds; a network's file system may have whole ones


def _stamps(found: Look) -> list[tuple[int, int, int]]:
    """Which folders were read, and when each was last changed, in nanoseconds."""
    stamps = []
    for folder in found.seen:
        with suppress(OSError):
            status = (found.root / folder).stat()
            stamps.append((status.st_dev, status.st_ino, max(status.st_mtime_ns, status.st_ctime_ns)))
    return stamps


def _look(root: Path, exclude: Iterable[str]) -> Look:
    left_out, seen, found = LeftOut(exclude), 0, Look(root)
    waiting = deque([""])
    while waiting and seen < _MOST_SEEN:
        folder = waiting.popleft()
        inside = _entries(root, folder)
        seen += len(inside)
        found.seen.append(folder)
        kind = _kind(folder, inside)
        if kind:
            sizes = [entry.stat().st_size for _, entry in _files(root, folder, left_out)]
            found.foreign += [Found(kind, folder, sum(sizes))] if sizes else []
            continue
        for name, entry in inside:
            if entry.is_dir(follow_symlinks=False):
                if not left_out.folder(name):
                    waiting.append(name)
            elif not left_out.file(name) and not left_out.folder(name):
                _note(found, name, entry)
    return found


def kind_of(mode: int) -> str | None:
    """What a file of this mode is; None for a file or folder."""
    return next((what for test, what in _SPECIAL if test(mode)), None)


_SPECIAL = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _note(found: Look, name: str, entry: os.DirEntry[str]) -> None:
    if entry.is_symlink():
        found.links.append(name)
    with suppress(OSError):  # a link to itself, or a file that has gone
        status = entry.stat()
        if special := kind_of(status.st_mode):
            found.special.append((name, special))
        elif stat.S_ISREG(status.st_mode):
            found.files[name] = status.st_size


def _kind(folder: str, inside: Iterable[tuple[str, os.DirEntry[str]]]) -> Kind | None:
    name, files = folder.rpartition("/")[2], {entry.name for _, entry in inside}
    return next((kind for kind in FOREIGN if folder and (kind.name == name or kind.file in files)), None)


def _files(root: Path, folder: str, left_out: LeftOut) -> Iterator[tuple[str, os.DirEntry[str]]]:
    waiting = [folder]
    while waiting:
        for name, entry in _entries(root, waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                if not left_out.folder(name):
                    waiting.append(name)
            elif not left_out.file(name) and _is_file(entry):
                yield name, entry


def _is_file(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):  # a link to itself
        return entry.is_file()
    return False


def _entries(root: Path, folder: str) -> list[tuple[str, os.DirEntry[str]]]:
    """What lies in a folder, by its path below ``root``, sorted; nothing for what is no folder or may not be read."""
    with suppress(OSError), os.scandir(root / folder) as found:
        inside = sorted(found, key=lambda entry: entry.name)
        return [(f"{folder}/{entry.name}" if folder else entry.name, entry) for entry in inside]
    return []
