"""Runs a program, passes its output through as it comes, keeps its last lines, and forwards stop signals to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

LINGER = 2.0  # seconds to wait for output: a process left behind may hold the pipe open for ever
KEPT_LINES = 400
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
    """A running program."""

    def __init__(self, command: Sequence[str], folder: Path, variables: dict[str, str], console: Console) -> None:
        self._console = console
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._spoke_on = 0
        self._process = subprocess.Popen(
            list(command), cwd=str(folder), env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.pid = self._process.pid
        streams = ((self._process.stdout, sys.stdout.buffer), (self._process.stderr, sys.stderr.buffer))
        self._readers = [
            threading.Thread(target=self._read, args=(source, target), daemon=True) for source, target in streams
        ]
        for reader in self._readers:
            reader.start()

    def wait(self) -> Ended:
        """Waits for the end of the program and of its output."""
        code = self._process.wait()
        until = time.monotonic() + LINGER
        for reader in self._readers:
            reader.join(max(0.0, until - time.monotonic()))
        if code < 0:
            return Ended(128 - code, -code)
        return Ended(code, _SHELL_SIGNALS.get(code))

    def send(self, number: int) -> None:
        """Sends a signal, if the program still runs."""
        self._process.send_signal(number)

    @property
    def last_lines(self) -> list[str]:
        """The end of its output. What it said on stderr before it went on talking on stdout is not the end."""
        lines = list(self._lines)
        return lines[-self._spoke_on :] if self._spoke_on > 3 else lines

    def _read(self, source: IO[bytes], target: IO[bytes]) -> None:
        is_error = target is sys.stderr.buffer
        rest = b""
        with source:
            for chunk in iter(lambda: os.read(source.fileno(), 65536), b""):
                self._console.write(target, chunk)
                *whole, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
                rest = rest[-KEPT_CHARACTERS:]
                self._keep(whole, is_error)
        self._keep([rest], is_error)

    def _keep(self, lines: Sequence[bytes], is_error: bool) -> None:
        for line in filter(bytes.strip, lines):
            self._lines.append(line[:KEPT_CHARACTERS].decode("utf-8", "replace"))
            self._spoke_on = 0 if is_error else min(self._spoke_on + 1, KEPT_LINES)


class Stop:
    """Turns SIGTERM, SageMaker's request to stop, into one for the running program."""

    def __init__(self) -> None:
        self.requested = False
        self._program: Program | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._forward)

    def watch(self, program: Program) -> None:
        """From now on requests go to this program; one that came before it started is passed on at once."""
        self._program = program
        if self.requested:
            program.send(signal.SIGTERM)

    def _forward(self, number: int, _frame: object) -> None:
        self.requested = True
        if self._program:
            self._program.send(number)
