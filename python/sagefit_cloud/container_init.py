"""Process number one of a training container: starts the command, passes SIGTERM on, and leaves nothing running.

A script of its own (``python -I -S container_init.py COMMAND...``), standard library only. Its standard input is a
life line to the embedded cloud: when that closes, for whatever reason, everything started here is killed. Its exit
code is the command's, or 128 and the signal, as with containers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Run the command."""
    _adopt_orphans()
    pending: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child is None:
            pending.append(number)
        else:
            child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    try:
        child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"exec {sys.argv[1]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    for number in pending:
        child.send_signal(number)
    threading.Thread(target=_hold_life_line, args=(child,), daemon=True).start()
    code = child.wait()
    _kill_the_rest(child.pid)
    return code if code >= 0 else 128 - code


def _adopt_orphans() -> None:
    """Become the parent of processes whose own parent ends, so that they can be found (Linux only)."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _hold_life_line(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):
        pass
    child.kill()


def _kill_the_rest(group: int) -> None:
    """Kill the command's process group, then adopted orphans until there are none."""
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)
    while True:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in parentheses may hold anything; the parent's number is the second field after it.
            if int(stat.read_bytes().rsplit(b")", 1)[1].split()[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
