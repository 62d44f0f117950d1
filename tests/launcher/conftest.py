"""A training container on this machine: the folders SageMaker makes, and the launcher as a job ships it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import ship_launcher
from _pytest.mark import ParameterSet

from sagefit.paths import ROOT

LAUNCHER = ROOT / "python" / "sagefit_launcher"
ARCHIVE = "launcher.pyz"
TRIAL = ROOT / "modules" / "training-job" / "launcher" / "sagefit_trial.py"
OLDEST = (3, 8)
#: Decides what the launcher does in a container: the tests that are marked with it import nothing else of Sagefit.
DECIDES = (
    "modules/training-job/*.json",
    "modules/training-job/launcher",
    "python/sagefit/paths.py",
    "python/sagefit_launcher",
    "tests/launcher",
    "tools/ship_launcher.py",
)
OF_FILES = pytest.mark.of_files(*DECIDES)
#: Runs the launcher and its scripts; any Python from 3.8 on may be named.
PYTHON = os.environ.get("SAGEFIT_LAUNCHER_PYTHON") or sys.executable


def interpreters() -> list[ParameterSet]:
    """The launcher's interpreter, and the oldest and newest that are installed here."""
    found = _installed((OLDEST[0], minor) for minor in range(OLDEST[1], sys.version_info.minor + 10))
    return [pytest.param(PYTHON, id="own"), *map(_named, sorted({*found[:1], *found[-1:]}))]


def too_old() -> list[ParameterSet]:
    """The Pythons older than the launcher's oldest that are installed here, perhaps none."""
    return [*map(_named, _installed([(2, 7), *((3, minor) for minor in range(OLDEST[1]))]))]


def _named(python: str) -> ParameterSet:
    """By its version, for names of tests are kept, and each machine has its own folders."""
    path = Path(python)
    return pytest.param(python, id=path.parents[1].name if path.name == "python" else path.name)


def _installed(versions: Iterable[tuple[int, int]]) -> list[str]:
    managed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = []
    for major, minor in versions:
        system = shutil.which(f"python{major}.{minor}")
        own = [system] if system and ".pyenv" not in system else []
        found += [*map(str, managed.glob(f"{major}.{minor}.*/bin/python")), *own][-1:]
    return found


def ship(folder: Path, changed: Mapping[str, str] | None = None) -> None:
    """Puts into ``folder`` what a job ships, made of the sources as they are, or with some modules ``changed``."""
    folder.mkdir(parents=True, exist_ok=True)
    files = ship_launcher.contents()
    files |= {f"sagefit_launcher/{name}": text.encode() for name, text in (changed or {}).items()}
    ship_launcher.write(folder / ARCHIVE, files)
    shutil.copy(TRIAL, folder)


@dataclass(frozen=True)
class Outcome:
    """What a run of the launcher left behind."""

    exit_code: int
    stdout: str
    stderr: str
    failure: str | None
    report: dict[str, Any]


class Container:
    """Writes a job's files and runs the launcher on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.before: list[str] = []  # words in front of the launcher's command
        self._started: list[subprocess.Popen[str]] = []
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SM_", "SAGEFIT_", "PYTHON", "COV"))
        }
        self.environment |= {"SAGEFIT_ML_ROOT": str(root), "TRAINING_JOB_NAME": "digits-260101-120000-0"}
        # Short, for sockets in it. A launcher that is killed leaves files there.
        self._temporary = tempfile.mkdtemp(prefix="ml-")
        self.environment["TMPDIR"] = self._temporary
        for channel in ("code", "train"):
            (root / "input" / "data" / channel).mkdir(parents=True)
        (root / "input" / "config").mkdir(parents=True)
        self.shipped = root / "input" / "data" / "sagefit"
        ship(self.shipped)
        self.config("resourceconfig", {"current_host": "algo-1", "hosts": ["algo-1"]})
        self.config("inputdataconfig", {"code": {}, "sagefit": {}, "train": {"TrainingInputMode": "File"}})
        self.config("hyperparameters", {})

    def config(self, name: str, content: object) -> None:
        """Writes one of SageMaker's configuration files."""
        (self.root / "input" / "config" / f"{name}.json").write_text(json.dumps(content))

    def code(self, name: str, text: str) -> None:
        """Puts a file into the code channel."""
        path = self.root / "input" / "data" / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def limit(self, mib: int) -> None:
        """Sets the memory limit as the embedded cloud does."""
        self.environment["SAGEFIT_MEMORY_LIMIT_BYTES"] = str(mib * 1024**2)

    def start(
        self, entry_point: str = "train.py", *options: str, python: str = PYTHON, words: tuple[str, ...] = ()
    ) -> subprocess.Popen[str]:
        """Starts the launcher."""
        return self.open(
            [*self.before, python, str(self.shipped / ARCHIVE), "--entry-point", entry_point, *options, "--", *words],
            self.root,
        )

    def open(self, command: list[str], folder: Path, stdin: int | None = None) -> subprocess.Popen[str]:
        """Starts a program of this container, which ends with it."""
        process = subprocess.Popen(
            command,
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            text=True,
            errors="replace",
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """Ends what a test that failed has left running, with all that it started, and removes temporary files."""
        for process in self._started:
            if process.poll() is None:
                top = psutil.Process(process.pid)
                for each in [top, *top.children(recursive=True)]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        each.kill()
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def run(self, script: str, *options: str, python: str = PYTHON, words: tuple[str, ...] = ()) -> Outcome:
        """Runs ``script`` as ``train.py``."""
        self.code("train.py", script)
        return self.end(self.start("train.py", *options, python=python, words=words))

    def end(self, process: subprocess.Popen[str]) -> Outcome:
        """Waits for the launcher and reads what it left."""
        stdout, stderr = process.communicate(timeout=60)
        return Outcome(process.returncode, stdout, stderr, self.failure(), self.report())

    def failure(self) -> str | None:
        """The failure file."""
        path = self.root / "output" / "failure"
        if not path.is_file():
            return None
        with path.open() as file:
            return file.read(1024**2)

    def report(self, name: str = "sagefit.json") -> dict[str, Any]:
        """The flight record."""
        path = self.root / "output" / "data" / name
        return dict(json.loads(path.read_text())) if path.is_file() else {}


class Killer(threading.Thread):
    """Does what the kernel does: over the limit it kills the largest process, here below ``top``."""

    def __init__(self, top: int, limit_mib: int) -> None:
        super().__init__(daemon=True)
        self._top = psutil.Process(top)
        self._limit = limit_mib * 1024**2

    def run(self) -> None:
        """Watches until it has killed, or until everything has ended."""
        while True:
            try:
                tree = [self._top, *self._top.children(recursive=True)]
                sizes = {process: process.memory_info().rss for process in tree}
            except psutil.NoSuchProcess:
                if not self._top.is_running():
                    return
                continue
            if sum(sizes.values()) > self._limit:
                max(sizes, key=lambda process: sizes[process]).send_signal(signal.SIGKILL)
                return
            time.sleep(0.01)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    """An empty training container."""
    made = Container(tmp_path / "ml")
    yield made
    made.close()
