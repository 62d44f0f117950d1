"""File systems of a limited size, in a mount namespace that nobody else sees. Linux only; needs no administrator.

The embedded cloud enters one when it starts, for the volumes of its hosts. As a script of its own (``python -I -S
namespace.py BYTES FOLDER COMMAND...``, standard library only) it enters another, puts a ``/dev/shm`` of that size
there, the folder, if one is named, in the place of ``/tmp``, and becomes the command. Where the kernel allows neither,
the command runs with the machine's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
_BIND = 0x1000  # MS_BIND
_DETACH = 2  # MNT_DETACH
_TMP = "/tmp"  # noqa: S108 - where scripts expect it


def enter() -> bool:
    """Give this process, which must have one thread only, mounts of its own; False where that is not allowed."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if library.unshare(_NEW_MOUNTS) != 0:
        if library.unshare(_NEW_MOUNTS | _NEW_USER) != 0:
            return False
        try:  # the same user as before, under the same number
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        except OSError:
            return False
    return bool(library.mount(None, b"/", None, ctypes.c_ulong(_PRIVATE), None) == 0)


def allowed() -> bool:
    """Whether :func:`enter` would work, tried in a process of its own: half of it done is worse than none."""
    child = os.fork()
    if child == 0:
        os._exit(0 if enter() else 1)
    return os.waitpid(child, 0)[1] == 0


def mount(folder: str, size: int) -> bool:
    """Put an empty file system of so many bytes, which lies in memory, over a folder."""
    library = ctypes.CDLL(None, use_errno=True)
    options = f"size={size},mode=1777".encode()
    return bool(library.mount(b"sagefit", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0), options) == 0)


def bind(folder: str, place: str) -> bool:
    """Show a folder in another place."""
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.mount(os.fsencode(folder), os.fsencode(place), None, ctypes.c_ulong(_BIND), None) == 0)


def unmount(folder: str) -> None:
    """Take it away, with all that is in it."""
    ctypes.CDLL(None).umount2(os.fsencode(folder), _DETACH)


def main() -> None:
    """Run a command with a ``/dev/shm`` and a ``/tmp`` of its own."""
    size, temporary, *command = sys.argv[1:]
    with contextlib.suppress(OSError, AttributeError):
        if enter():
            mount("/dev/shm", int(size))  # noqa: S108 - where Linux has it
            is_named = os.path.realpath(os.environ.get("TMPDIR", "")) == temporary
            if temporary and bind(temporary, _TMP) and is_named:  # a job may have named another folder
                os.environ["TMPDIR"] = _TMP
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
