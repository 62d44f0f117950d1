"""Runs a program, passes its output through as it comes, and keeps its last lines."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from . import memory

LINGER = 2.0  # seconds to wait for output: a process left behind may hold the pipe open for ever
PIPE_SIZE = 65536  # as much as a pipe holds: one read takes all that was written before
KEPT_LINES = 4000  # teardown of many ranks can be longer than what ended them
KEPT_CHARACTERS = 2000  # of one line
_SHELL_SIGNALS = {128 + number: number for number in (6, 7, 9, 11, 15)}  # a shell turns a signal into 128 + number


class Ended(NamedTuple):
    """How a program ended."""

    exit_code: int
    signal: int | None


class Console:
    """The launcher's own two output streams, shared by the script and the metric lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line_open = False

    def write(self, stream: IO[bytes], chunk: bytes) -> None:
        """Passes a piece of the script's output through."""
        with self._lock:
            self._send(stream, chunk)
            if stream is sys.stdout.buffer:
                self._line_open = not chunk.endswith(b"\n")

    def line(self, text: str) -> None:
        """Prints a line of the launcher, never inside a line that the script has begun."""
        with self._lock:
            self._send(sys.stdout.buffer, (b"\n" if self._line_open else b"") + text.encode() + b"\n")
            self._line_open = False

    def _send(self, stream: IO[bytes], chunk: bytes) -> None:
        try:
            stream.write(chunk)
            stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads the log any more; the script still has to be drained, or it would stand still


class Program:
    """A running program, in a process group of its own.

    A ``wrapper``, such as a shell or torchrun, only starts others and waits for them.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        variables: dict[str, str],
        console: Console,
        *,
        wrapper: bool = False,
    ) -> None:
        self._console = console
        self._wrapper = wrapper
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._spoke_on = 0
        self._process = subprocess.Popen(
            list(command),
            cwd=str(folder),
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout, self._process.stderr), daemon=True
        )
        self._reader.start()

    def wait(self) -> Ended:
        """Waits for the end of the program and of its output."""
        code = self._process.wait()
        self._reader.join(LINGER)
        if code < 0:
            return Ended(128 - code, -code)
        return Ended(code, _SHELL_SIGNALS.get(code))

    def ask_to_stop(self, number: int) -> None:
        """Sends a signal to the script itself, if it still runs.

        Not to the whole group: workers of a data loader would end at once, and the script, which still needs them to
        reach its next checkpoint, with them. Nor to a wrapper: a shell would leave the script behind, and torchrun
        gives it less time than there is.
        """
        for pid in (self._wrapper and memory.children(self.pid)) or [self.pid]:
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill(self) -> None:
        """Kills the program and all that it has started, if it still runs."""
        if self._process.poll() is not None:
            return  # its number may be another's by now
        for pid in memory.tree(self.pid):  # torchrun gives each of its processes a group of its own
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    @property
    def last_lines(self) -> list[str]:
        """The end of its output. What it said on stderr before it went on talking on stdout is not the end."""
        lines = list(self._lines)
        return lines[-self._spoke_on :] if self._spoke_on > 3 else lines

    def _read(self, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        targets = {stdout: sys.stdout.buffer, stderr: sys.stderr.buffer}
        rest = {stdout: b"", stderr: b""}
        with selectors.DefaultSelector() as selector, stdout, stderr:
            for source in targets:
                selector.register(source, selectors.EVENT_READ)
            while selector.get_map():
                ready = {key.fileobj for key, _ in selector.select()}
                # Of what comes together stdout goes first: a traceback is the end of what a script says.
                for source in [source for source in (stdout, stderr) if source in ready]:
                    chunk = os.read(source.fileno(), PIPE_SIZE)
                    if not chunk:
                        selector.unregister(source)
                        self._keep([rest[source]], source is stderr)
                        continue
                    self._console.write(targets[source], chunk)
                    *whole, last = (rest[source] + chunk).replace(b"\r", b"\n").split(b"\n")
                    rest[source] = last[:KEPT_CHARACTERS]
                    self._keep(whole, source is stderr)

    def _keep(self, lines: Sequence[bytes], is_error: bool) -> None:
        for line in filter(bytes.strip, lines):
            self._lines.append(line[:KEPT_CHARACTERS].decode("utf-8", "replace"))
            self._spoke_on = 0 if is_error else min(self._spoke_on + 1, KEPT_LINES)
