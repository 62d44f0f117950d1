"""Terraform commands that outlive the process that started them.

Each runs in a session of its own, and what it prints goes to files: no closed terminal ends it, no signal for this
process reaches it, and no broken pipe. Where this process is killed, Terraform finishes its work and writes its state.
A signal that asks this process to end becomes the one after which Terraform stops in good order (SIGINT), and it is
waited for. A second one no longer waits: Terraform goes on by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from python_terraform import Terraform as PythonTerraform

from sagefit import signals
from sagefit.console import err
from sagefit.terraform import messages
from sagefit.terraform.at_work import Work

_LOOK = 0.5  # seconds between two looks at what Terraform has printed
_LOCKING = ("plan", "apply", "state push")  # commands that take the lock of the state
_WELL = (0, 2)  # their exit codes: done, and done with changes
_UMASK = 0o077  # plans and states are for their owner


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (below zero: by that signal), and what it printed."""

    code: int
    out: str
    error: str
    stopped: bool  # it was asked to stop
    alone: bool  # the cloud that it worked on is gone, and it was ended


class Session(PythonTerraform):
    """python-terraform, with commands that outlive this process.

    Args:
        root: The root module.
        binary: Terraform.
        environment: What its commands get, all of it.
        folder: For what they print, while they run.
        work: The hold on the stack, which Terraform shares.
        tell: Hears what was printed since the last time, about twice a second.
        is_there: Whether the cloud is still there. Terraform asks for half a minute, with each request anew.
    """

    def __init__(
        self,
        root: Path,
        binary: Path,
        *,
        environment: Mapping[str, str],
        folder: Path,
        work: Work,
        tell: Callable[[str], None],
        is_there: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(str(root), terraform_bin_path=str(binary))  # type: ignore[no-untyped-call]
        self._environment = environment
        self._files = folder / "out", folder / "err"
        self._work = work
        self._tell = tell
        self._is_there = is_there
        self._alone = False
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = 0

    def cmd(self, cmd: str, *args: str, **kwargs: Any) -> Ended:
        """Run a command and wait for its end. Options are python-terraform's.

        Raises OSError when it cannot be run, and KeyboardInterrupt when this process was asked to end twice.
        """
        with _pipe() as (self._woken, self._wakes), signals.heard(self._hear):
            words: list[str] = self.generate_cmd_string(cmd, *args, **kwargs)  # type: ignore[no-untyped-call]
            self._process = self._start(words)
            self._work.begin(self._process.pid)
            if self._asked:  # while it was started
                self._stop()
            self._follow(self._process)
        pid, code = self._process.pid, self._process.returncode
        out, error = (self._printed(file) for file in self._files)
        if cmd in _LOCKING and code in _WELL:
            self._work.settle()
        else:
            self._work.end(pid, forget=cmd not in _LOCKING or (code >= 0 and not messages.holds_a_lock(out + error)))
        return Ended(code, out, error, bool(self._asked), self._alone)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as files:
            streams = [files.enter_context(open(file, "wb", opener=_private)) for file in self._files]
            return subprocess.Popen(
                command,
                cwd=self.working_dir,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
                pass_fds=[self._work.number],
                start_new_session=True,
                umask=_UMASK,
            )

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        def wait() -> None:
            process.wait()
            os.write(self._wakes, b" ")

        threading.Thread(target=wait, name="terraform", daemon=True).start()
        said = 0
        with self._files[0].open(encoding="utf-8", errors="replace") as printed:
            while process.returncode is None:
                if select.select([self._woken], [], [], _LOOK)[0]:
                    os.read(self._woken, 1)
                if self._asked > said:
                    said = self._asked
                    self._say(process)
                self._tell(printed.read())
                if not self._is_there():
                    self._alone = True
                    _end_all(process.pid)
        if process.returncode < 0:  # its providers do not notice
            _end_all(process.pid)

    def _printed(self, file: Path) -> str:
        if self._alone and not file.exists():  # whoever starts the next cloud clears up after this one
            return ""
        printed = file.read_text(encoding="utf-8", errors="replace")
        file.unlink()
        return printed

    def _hear(self, _number: int) -> None:
        """Hear a signal, between any two steps of the program: no place to print, or to wait for a lock."""
        self._asked += 1
        if self._asked == 1:
            self._stop()
        os.write(self._wakes, b" ")

    def _stop(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def _say(self, process: subprocess.Popen[bytes]) -> None:
        """Say what a signal has done. Raises KeyboardInterrupt after the second one."""
        if self._asked == 1:
            err.print("interrupted: waiting for Terraform to stop and release its state")
            return
        which = f"Terraform (process {process.pid})"
        err.print(f"not waiting any more: {which} goes on, and releases its state by itself", soft_wrap=True)
        raise KeyboardInterrupt


def _end_all(session: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe: a handler of signals may write to it, and wakes who waits for it."""
    ends = os.pipe()
    yield ends  # after an error they stay open, for somebody may still write
    for end in ends:
        os.close(end)
