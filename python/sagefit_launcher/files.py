"""Files in places where a script may put anything: never waited for, never followed to somewhere else.

A FIFO would wait for its other end, a device might never end, a link leads out of the folder, and a second name of a
file out of it, too. So folders are opened one below the other, only a regular file is read, and what is written is
always a new file, in the place of whatever was there; a folder stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

_PLAIN = os.O_CLOEXEC | os.O_NONBLOCK
_TRIES = 3  # a script may put something there again


def read(root: Path, name: str, longest: int, *, follow: bool = False) -> bytes:
    """At most ``longest`` bytes of a regular file below ``root``, by way of links if ``follow``. Raises OSError."""
    kept_inside = 0 if follow else os.O_NOFOLLOW
    with _parent(root, name, kept_inside) as (folder, last):
        _refuse_all_but_a_file(os.stat(last, dir_fd=folder, follow_symlinks=follow), name)
        with os.fdopen(os.open(last, os.O_RDONLY | _PLAIN | kept_inside, dir_fd=folder), "rb") as file:
            _refuse_all_but_a_file(os.fstat(file.fileno()), name)  # it may be another by now
            return file.read(longest)


def write(root: Path, name: str, content: bytes) -> None:
    """Makes a file below ``root``, and the folders that it is in. Raises OSError."""
    with _parent(root, name, os.O_NOFOLLOW, make=True) as (folder, last):
        for left in reversed(range(_TRIES)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(last, dir_fd=folder)
            try:
                made = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666, dir_fd=folder)
            except FileExistsError:
                if left:
                    continue
                raise
            with os.fdopen(made, "wb") as file:
                file.write(content)
            return


def write_whole(root: Path, name: str, content: bytes) -> None:
    """Makes a file below ``root`` that nobody ever sees half of. Raises OSError."""
    write(root, name + ".part", content)
    with _parent(root, name, os.O_NOFOLLOW) as (folder, last):
        os.replace(last + ".part", last, src_dir_fd=folder, dst_dir_fd=folder)


def make_folder(root: Path, name: str) -> None:
    """Makes a folder below ``root``, and those that it is in. Raises OSError where something else is in its place."""
    with _parent(root, f"{name}/", os.O_NOFOLLOW, make=True):
        pass


def remove(root: Path, name: str) -> None:
    """Removes a file or a link below ``root``; a folder stays."""
    with contextlib.suppress(OSError), _parent(root, name, os.O_NOFOLLOW) as (folder, last):
        os.unlink(last, dir_fd=folder)


def remove_tree(folder: Path) -> None:
    """Removes a folder with all that is in it, or what stands in its place, as far as that can be removed."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(str(folder)).st_mode):
            shutil.rmtree(str(folder), ignore_errors=True)  # it would open a FIFO, and wait
        else:
            folder.unlink()


def copy_tree(source: Path, target: Path) -> None:
    """Copies a folder into another. What stands there in the place of a file or folder makes room. Raises OSError."""
    for path in source.rglob("*"):
        there = target / path.relative_to(source)
        if there.is_symlink() or not (path.is_dir() and there.is_dir()):
            remove_tree(there)
    shutil.copytree(str(source), str(target), dirs_exist_ok=True)


@contextlib.contextmanager
def _parent(root: Path, name: str, kept_inside: int, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that a file is in, opened, and the last part of its name."""
    *above, last = name.split("/")
    if ".." in (*above, last):
        raise OSError(f"{name} leads out of {root}")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(str(root), flags)
    try:
        for part in above:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            outer, folder = folder, os.open(part, flags | kept_inside, dir_fd=folder)
            os.close(outer)
        yield folder, last
    finally:
        os.close(folder)


def _refuse_all_but_a_file(found: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{name} is no regular file")
