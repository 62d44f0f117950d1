"""Sagefit commands that this process runs as child processes, several at the same time if necessary.

Each child has a session of its own, so Ctrl-C in the terminal does not reach it directly. This process passes the
signal on, once: at a second signal the child would no longer wait for Terraform.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and what it printed."""

    code: int
    out: str
    error: str


class Children:
    """The commands that run now."""

    def __init__(self, environment: Mapping[str, str] | None = None, *, folder: Path | None = None) -> None:
        self._environment = environment
        self._folder = folder
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, *words: str) -> Ended:
        """Run a command to its end."""
        with self._started(words, subprocess.PIPE) as process:
            out, error = process.communicate()
            return Ended(process.returncode, out, error)

    def follow(
        self,
        words: Sequence[str],
        tell: Callable[[str], None],
        *,
        seconds: float,
        environment: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Run a command for at most ``seconds`` and pass each printed line to ``tell``; its exit code and all lines.

        ``environment`` is what this command alone gets on top of that of all.
        """
        said = []
        with self._started(words, subprocess.STDOUT, environment) as process:
            limit = threading.Timer(seconds, process.terminate)
            limit.daemon = True
            limit.start()
            try:
                for line in process.stdout or ():
                    said.append(line)
                    tell(line.rstrip())
            finally:
                limit.cancel()
        return process.returncode, "".join(said)

    def stop(self) -> None:
        """Ask all children to stop, also those that start later. Whoever waits for a child continues to wait."""
        self._stopped = True
        for process in self._running.copy():
            process.send_signal(signal.SIGINT)

    @contextlib.contextmanager
    def _started(
        self, words: Sequence[str], errors: int, more: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [sys.executable, "-m", "sagefit", *words],
            cwd=self._folder,
            env={**(os.environ if self._environment is None else self._environment), **more}
            if more
            else self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            self._running.add(process)
            try:
                if self._stopped:  # stop came during the start; a second signal does no harm before Terraform runs
                    process.send_signal(signal.SIGINT)
                yield process
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
                process.communicate()
                raise
            finally:
                self._running.discard(process)
