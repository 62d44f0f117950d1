"""Python environments beside our own: named by what is in them, built once, never changed afterwards.

When several processes need the same environment, one builds it and the others wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sagefit.errors import FAILED, SagefitError

#: pip's options for a lock file: install only what it lists. By default pip resolves again and may find newer releases.
#: Build with the packages that are installed: pip would otherwise download build tools, without a digest.
LOCKED = ("--require-hashes", "--no-deps", "--no-build-isolation")
_COMPLETE = ".complete"
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


def digest(content: bytes) -> str:
    """16 hexadecimal digits that stand for this content on this Python."""
    python = f"{sys.implementation.cache_tag}-{sys.base_prefix}".encode()
    return hashlib.sha256(python + b"\0" + content).hexdigest()[:16]


def built(folder: Path, build: Callable[[Path], None]) -> Path:
    """The folder, after ``build`` has filled it, by this process or another, now or earlier."""
    if (folder / _COMPLETE).exists():
        return folder
    with _locked(folder.with_suffix(".lock")):
        if not (folder / _COMPLETE).exists():  # nobody else built it while we waited
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            (folder / _COMPLETE).touch()  # written last: half an environment is none
    return folder


def create(folder: Path, *locks: Path, one_of: Sequence[Path] = ()) -> None:
    """Make an environment with pip and what lock files with hashes list (see :func:`install_locked`)."""
    pip = _own_pip()
    venv.EnvBuilder(symlinks=True, with_pip=not pip).create(folder)
    for part in pip:
        shutil.copytree(part, packages(folder) / part.name)
    if locks:
        install_locked(folder, *locks, one_of=one_of)


def install_locked(folder: Path, *locks: Path, one_of: Sequence[Path] = ()) -> None:
    """Install what lock files with hashes list, one after the other, and nothing else.

    ``one_of`` lists builds of the same package: the first that pip's indexes offer is installed.
    Raises SagefitError when none can be installed, or when the listed packages do not fit together.
    """
    for lock in locks:
        _install_lock(folder, lock)
    for build in one_of:
        try:
            _install_lock(folder, build)
            break
        except SagefitError as error:
            if build == one_of[-1] or "No matching distribution found" not in error.message:
                raise
    done = _pip(folder, "check")
    if done.returncode:
        wrong = "; ".join(done.stdout.strip().splitlines())
        raise SagefitError(f"{locks[-1].name} does not fit together: {wrong}", exit_code=FAILED)


def _install_lock(folder: Path, lock: Path) -> None:
    install(folder, *LOCKED, "--only-binary", ":all:", "-r", str(lock))


def install(folder: Path, *arguments: str) -> None:
    """``pip install`` in an environment. Raises SagefitError with the line in which pip says what is wrong."""
    done = _pip(folder, "install", "--quiet", "--no-input", *arguments)
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if "error" in line.lower()] or [done.stderr.strip()]
        raise SagefitError(
            f"the environment {folder.name} could not be built: {lines[-1][-500:]}",
            hint="check that pip reaches a package index from here (pip config list)",
            exit_code=FAILED,
        )


def _pip(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PYTHON"))}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    command = [str(folder / "bin" / "python"), "-m", "pip", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def packages(folder: Path) -> Path:
    """Where the packages of an environment lie."""
    return folder / "lib" / _PYTHON / "site-packages"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _own_pip() -> list[Path]:
    """The files of this program's pip. Copying them takes a tenth of the time of unpacking Python's bundled pip."""
    try:
        files = importlib.metadata.files("pip") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    tops = {file.parts[0]: Path(str(file.locate())) for file in files if file.parts[0].startswith("pip")}
    return [next(parent for parent in path.parents if parent.name == top) for top, path in tops.items()]
