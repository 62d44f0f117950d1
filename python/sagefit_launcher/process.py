"""Runs a program, passes its output through as it comes, and keeps its last lines."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from . import memory

LINGER = 2.0  # seconds to wait for output: a process left behind may hold the pipe open for ever
PIPE_SIZE = 65536  # as much as a pipe holds: one read takes all that was written before
QUIET = 5.0  # seconds without a word within a line, after which the launcher's own line does not wait for its end
KEPT_LINES = 4000  # teardown of many ranks can be longer than what ended them
KEPT_CHARACTERS = 2000  # of one line
_END = re.compile(rb"\r\n|\n|\r")
_SHELL_SIGNALS = {128 + number: number for number in (6, 7, 9, 11, 15)}  # a shell turns a signal into 128 + number


class Ended(NamedTuple):
    """How a program ended. ``by_code``: the signal is only what its exit code stands for, as that of a shell does."""

    exit_code: int
    signal: int | None
    by_code: bool = False


class Console:
    """The launcher's own two output streams, shared by the script and the lines of the launcher.

    A script that writes without a buffer writes a line in pieces, and what reads a log reads lines: a line of the
    launcher waits until the script has ended the line that it has begun, with a line feed or a carriage return. A
    script that has begun a line and then says nothing for a while, or ends, gets its line feed from the launcher.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: set[IO[bytes]] = set()  # the streams on which the script is within a line
        self._ended = True  # what was sent last ended with a line feed
        self._spoke = -QUIET  # when the script last wrote
        self._waiting: list[str] = []  # lines of the launcher
        self._watched = False  # a thread waits for the script to be quiet
        self._shared = _same_file(sys.stdout, sys.stderr)

    def write(self, stream: IO[bytes], chunk: bytes) -> None:
        """Passes a piece of the script's output through."""
        with self._lock:
            if stream is not sys.stdout.buffer and not self._shared:
                self._send(stream, chunk)  # elsewhere
                return
            end = _END.search(chunk) if self._waiting else None
            for piece in (chunk[: end.end()], chunk[end.end() :]) if end else (chunk,):
                if piece:
                    self._send(stream, piece)
                    self._ended = piece.endswith(b"\n")
                    (self._begun.discard if piece.endswith((b"\n", b"\r")) else self._begun.add)(stream)
                if not self._begun:
                    self._send_waiting()
            self._spoke = time.monotonic()

    def line(self, text: str) -> None:
        """Prints a line of the launcher, now or once the script's line has ended."""
        with self._lock:
            self._waiting.append(text)
            if not self._begun or self._is_quiet():
                self._send_waiting()
            elif not self._watched:
                with contextlib.suppress(RuntimeError):  # no thread to be had: the next piece or line looks again
                    threading.Thread(target=self._watch, daemon=True).start()
                    self._watched = True

    def settle(self) -> None:
        """Prints at once what waits: the script has ended, within a line or not."""
        with self._lock:
            self._spoke = -QUIET
            self._send_waiting()

    def _watch(self) -> None:
        while True:
            time.sleep(QUIET / 10)
            with self._lock:
                if self._is_quiet():
                    self._send_waiting()
                if not self._waiting:
                    self._watched = False
                    return

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._spoke >= QUIET

    def _send_waiting(self) -> None:
        if not self._waiting:
            return
        lines = "".join(f"{text}\n" for text in self._waiting).encode("utf-8", "replace")
        self._send(sys.stdout.buffer, (b"" if self._ended else b"\n") + lines)
        self._ended = True
        self._begun.clear()
        self._waiting.clear()

    def _send(self, stream: IO[bytes], chunk: bytes) -> None:
        try:
            stream.write(chunk)
            stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads the log any more; the script still has to be drained, or it would stand still


def _same_file(*streams: IO[str]) -> bool:
    """Whether these streams end in one file, pipe or terminal."""
    try:
        first, *others = [os.fstat(stream.fileno()) for stream in streams]
    except (OSError, ValueError):
        return False
    return all(os.path.samestat(first, other) for other in others)


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
        self._console.settle()
        if code < 0:
            return Ended(128 - code, -code)
        return Ended(code, _SHELL_SIGNALS.get(code), by_code=True)

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
