"""One host of a training job: its ``/opt/ml``, its processes, its memory limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from sagefit.cloud import paths
from sagefit.processes import running
from sagefit_cloud import container_init, namespace
from sagefit_cloud.memory_watch import MemoryWatch
from sagefit_launcher import files

ML = "/opt/ml"
_TMP = Path("/tmp")  # noqa: S108 - where scripts expect it
_TEMPORARY = "tmp"  # its folder on the volume
_LINE_LIMIT = 256 * 1024
_LONGEST_MESSAGE = 1024**2


@dataclass
class Container:
    """A host, ``algo-N``. Its folder ``ml`` is what ``/opt/ml`` is in a real container."""

    name: str
    folder: Path
    memory_limit: int
    on_line: Callable[[str], None]
    disk_limit: int = 0  # 0: none
    own_disk: bool = False  # a file system of that size; else its size is watched
    measure: bool = False  # keep the peak of its memory
    scratch: Path | None = None  # where the short name of its temporary folder lies
    temporary: str = field(default="", init=False)
    _outside: Path | None = field(default=None, init=False)
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _watch: MemoryWatch | None = field(default=None, init=False)
    _pump: threading.Thread | None = field(default=None, init=False)
    _cpu: tuple[float, dict[int, float]] = field(default=(0.0, {}), init=False)
    _mounted: bool = field(default=False, init=False)

    @property
    def ml(self) -> Path:
        """What ``/opt/ml`` is here."""
        return self.folder / "ml"

    def prepare(self, config: dict[str, Any]) -> None:
        """Make the folders and write the files of ``/opt/ml/input/config``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._mounted = self.own_disk and namespace.mount(str(self.folder), self.disk_limit)
        for part in ("input/config", "input/data", "model", "output/data", "code"):
            (self.ml / part).mkdir(parents=True, exist_ok=True)
        for name, content in config.items():
            (self.ml / "input" / "config" / f"{name}.json").write_text(json.dumps(content))
        for part in ("home", "work", _TEMPORARY):
            (self.folder / part).mkdir(exist_ok=True)
        # It lies on the volume. Its name is short, because sockets in it have names of 108 bytes at most.
        self._outside = Path(tempfile.mkdtemp(prefix="c-" if self.scratch else "sagefit-", dir=self.scratch))
        (self._outside / "t").symlink_to(self.folder / _TEMPORARY, target_is_directory=True)
        self.temporary = str(self._outside / "t")

    def localise(self, text: str) -> str:
        """A path below ``/opt/ml``, as it is here."""
        if text == ML or text.startswith(f"{ML}/"):
            return str(self.ml) + text[len(ML) :]
        return text

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        """Run the command."""
        python = [sys.executable, "-I", "-S"]
        # Half of the memory for /dev/shm is Linux's default; AWS publishes no figure.
        shared = [*python, namespace.__file__, str(self.memory_limit // 2), self._own_tmp()]
        self._process = subprocess.Popen(
            [*shared, *python, container_init.__file__, *map(self.localise, command)],
            env={name: self.localise(value) for name, value in environment.items()},
            cwd=self.folder / "work",
            stdin=subprocess.PIPE,  # the life line: nothing is ever written to it
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._pump = threading.Thread(target=self._read_lines, daemon=True)
        self._pump.start()
        self._watch = MemoryWatch(self._process.pid, self.memory_limit, measure=self.measure)
        self._watch.start()
        self._cpu = (time.monotonic(), {})

    def _own_tmp(self) -> str:
        """The folder to be seen as ``/tmp``; none where what the container needs lies below the machine's own."""
        needed = (self.folder, Path(sys.prefix), paths.cloud_home(), paths.image_cache(), Path(namespace.__file__))
        hidden = any(_TMP in path.resolve().parents for path in needed)
        return "" if hidden else str((self.folder / _TEMPORARY).resolve())

    def _read_lines(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        for line in iter(lambda: process.stdout.readline(_LINE_LIMIT), ""):  # type: ignore[union-attr]
            self.on_line(line.rstrip("\n"))

    def poll(self) -> int | None:
        """Exit code, or None while it runs. Once there is one, all its lines were read."""
        if self._process is None:
            return None
        code = self._process.poll()
        if code is None:
            return None
        if self._watch:
            self._watch.stop()
        if code == -signal.SIGKILL:
            self._kill_orphans()
        if self._pump:
            self._pump.join(5)
        return code if code >= 0 else 128 - code

    def terminate(self) -> None:
        """Send SIGTERM to the command."""
        if self._process and self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """Kill everything in it, and wait until it is gone."""
        process = self._process
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.poll()

    def close(self) -> None:
        """Kill what runs, and remove what is outside of its folder."""
        self.kill()
        if self._mounted:
            namespace.unmount(str(self.folder))
            self._mounted = False
        if self._outside:
            files.remove_tree(self._outside)

    @property
    def disk_is_full(self) -> bool:
        """Whether its files are over the limit, where no file system of its own keeps them below it."""
        if self._mounted or not self.disk_limit:
            return False
        total = 0
        for path in self.folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.lstat().st_blocks * 512
        return total > self.disk_limit

    def _kill_orphans(self) -> None:
        """Process number one was killed, and what it had started lives on, with this folder's name in it."""
        for process in running():
            with contextlib.suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and process.environ().get("SAGEFIT_ML_ROOT") == str(self.ml):
                    process.kill()

    @property
    def memory_kills(self) -> int:
        """How many of its processes were killed for memory."""
        return self._watch.kills if self._watch else 0

    @property
    def memory_peak(self) -> int:
        """Bytes in use at the fullest moment that was looked at; 0 where none was."""
        return self._watch.peak if self._watch else 0

    @property
    def failure(self) -> str | None:
        """What the command wrote to ``/opt/ml/output/failure``."""
        return self.said("failure") or None

    def said(self, name: str) -> str:
        """What the command wrote into a file of ``/opt/ml/output``; nothing where there is none that can be read."""
        try:
            return files.read(self.ml, f"output/{name}", _LONGEST_MESSAGE).decode(errors="replace").strip()
        except OSError:
            return ""

    def shares(self) -> dict[str, float]:
        """Memory and processor use in percent: of the limit, and of one processor."""
        if self._watch is None or self.poll() is not None:
            return {}
        before, used_before = self._cpu
        at, used = time.monotonic(), self._watch.cpu_seconds()
        self._cpu = (at, used)
        spent = sum(max(0.0, seconds - used_before.get(pid, 0.0)) for pid, seconds in used.items())
        return {
            "MemoryUtilization": 100 * self._watch.used() / self.memory_limit,
            "CPUUtilization": 100 * spent / max(at - before, 1e-3),
        }
