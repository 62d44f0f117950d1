"""What of a folder on this machine is uploaded, and the folders in it that belong to this machine alone.

Patterns are those of Terraform's ``fileset``, which uploads what they do not leave out.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from sagefit.job.problem import Problem
from sagefit.job.source import Key

ALWAYS_EXCLUDED = (
    "**/.git/**",
    "**/.venv/**",
    "**/.terraform/**",
    "**/.ipynb_checkpoints/**",
    "**/__pycache__/**",
    "**/.mypy_cache/**",
    "**/.pytest_cache/**",
    "**/.ruff_cache/**",
    "**/*.pyc",
    "**/*.pyo",
    "**/*.tfstate",
    "**/.DS_Store",
)
"""Of code; ``modules/training-job/objects.tf`` leaves out the same."""

_MOST_SEEN = 100_000  # entries of a folder; Terraform uploads 1,000 files and refuses more
_MOST_NAMED = 3


@dataclass(frozen=True)
class Kind:
    """A kind of folder that is neither data nor code of a job: known by its name, or by a file in it."""

    what: str
    name: str = ""
    file: str = ""

    def pattern(self, folder: str) -> str:
        """What leaves ``folder`` out."""
        written = re.sub(r"[\\*?\[{]", r"\\\g<0>", folder)
        return f"**/{self.name}/**" if self.name else f"{written}/**"


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


@dataclass(frozen=True)
class Upload:
    """What a look at a folder found: links by their paths in it, and foreign folders."""

    links: list[str]
    foreign: list[Found]


class _LeftOut:
    """Which files and folders patterns leave out. One that Terraform will not understand leaves out nothing."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._files, self._folders = [], []
        for pattern in patterns:
            with suppress(re.error):
                self._files.append(re.compile(_regex(pattern)))
                if pattern.endswith("/**"):
                    self._folders.append(re.compile(_regex(pattern[:-3])))

    def file(self, name: str) -> bool:
        return any(pattern.fullmatch(name) for pattern in self._files)

    def folder(self, name: str) -> bool:
        """Whether nothing below it is uploaded."""
        return any(pattern.fullmatch(name) for pattern in self._folders)


def shipped(root: Path, exclude: Iterable[str]) -> list[Path]:
    """The files of the folder ``root`` that are uploaded, sorted. Links to folders are not followed."""
    return sorted(root / name for name, _ in _files(root, "", _LeftOut(exclude)))


def look(root: Path, exclude: Iterable[str]) -> Upload:
    """Look once through what is uploaded of the folder ``root``, level by level, so that what lies near is found first.

    Links and what is left out are not followed. ``root`` itself is not foreign: the job file names it.
    """
    left_out, seen = _LeftOut(exclude), 0
    links: list[str] = []
    foreign: list[Found] = []
    waiting = deque([""])
    while waiting and seen < _MOST_SEEN:
        folder = waiting.popleft()
        inside = _entries(root, folder)
        seen += len(inside)
        kind = _kind(folder, inside)
        if kind:
            sizes = [entry.stat().st_size for _, entry in _files(root, folder, left_out)]
            foreign += [Found(kind, folder, sum(sizes))] if sizes else []
            continue
        for name, entry in inside:
            if entry.is_symlink():
                links += [] if left_out.file(name) or left_out.folder(name) else [name]
            elif entry.is_dir() and not left_out.folder(name):
                waiting.append(name)
    return Upload(links, foreign)


def foreign_problem(field: Key, root: str, found: Sequence[Found], of: str, knob: str) -> Iterator[Problem]:
    """The problem of an upload, ``root`` in the job file, that has foreign folders in it."""
    groups: dict[str, list[Found]] = {}
    for one in found:
        groups.setdefault(one.kind.pattern(one.folder), []).append(one)
    if groups:
        said = [_said(group) for group in groups.values()]
        rest = [f"{len(said) - _MOST_NAMED} more"] if len(said) > _MOST_NAMED else []
        names = ", and ".join([*said[:_MOST_NAMED], *rest])
        yield Problem(field, f"{root!r} holds {names}, and every file of {of} is uploaded", knob)


def exclude_problem(field: Key) -> Problem:
    """The problem of an input that is not local and leaves files out."""
    message = "leaves files of a local path out, and this input has none"
    return Problem((*field, "exclude"), message, "remove it, or give a local path as uri")


def patterns_of(found: Iterable[Found], exclude: Iterable[str]) -> str:
    """``exclude`` with what leaves ``found`` out too, as people write it in a job file."""
    patterns = dict.fromkeys([*exclude, *(one.kind.pattern(one.folder) for one in found)])
    return json.dumps(list(patterns), ensure_ascii=False)


def _said(group: Sequence[Found]) -> str:
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    return f"{group[0].kind.what}, {group[0].folder}{more} ({decimal(sum(one.size for one in group))})"


def _kind(folder: str, inside: Iterable[tuple[str, os.DirEntry[str]]]) -> Kind | None:
    name, files = folder.rpartition("/")[2], {entry.name for _, entry in inside}
    return next((kind for kind in FOREIGN if folder and (kind.name == name or kind.file in files)), None)


def _files(root: Path, folder: str, left_out: _LeftOut) -> Iterator[tuple[str, os.DirEntry[str]]]:
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


def _regex(glob: str) -> str:
    """A pattern of Terraform's ``fileset`` as a regular expression."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    inside = 0
    said = []
    for piece in re.findall(r"\*\*/|\*\*|\[[^]]+\]|\\.|.", glob):
        inside += {"{": 1, "}": -1}.get(piece, 0)
        if piece in parts and (piece != "," or inside):
            said.append(parts[piece])
        else:
            said.append(_class(piece) if piece[0] == "[" and len(piece) > 1 else re.escape(piece[-1]))
    return "".join(said)


def _class(piece: str) -> str:
    """``[!a-z]`` as a regular expression has it, where some characters would mean sets."""
    inside = re.sub(r"[\[&|~]|-(?=-)", r"\\\g<0>", piece[1:-1])
    return f"[{'^' + inside[1:] if inside[0] == '!' else inside}]"
