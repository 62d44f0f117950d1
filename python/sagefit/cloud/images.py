"""Environments that stand in for training images: one virtual environment for each lock file.

There is no container engine here. What an image brings is reduced to Python and its packages, from a lock file with
hashes in ``images/``; an environment is named by what is in it, built once, and never changed afterwards.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import logging
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

from sagefit.cloud import paths

_LOG = logging.getLogger(__name__)
_LOCKS = Path(__file__).parent / "images"
_COMPLETE = ".complete"
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
#: Last part of an image's repository -> name of the lock file. "python" has no packages.
_FRAMEWORKS = {"sagemaker-scikit-learn": "sklearn", "sagemaker-xgboost": "xgboost", "python": "base"}
_BASE = "base"


class ImageError(Exception):
    """An image that cannot be stood in for; the text says what can."""


def framework_of(image: str) -> str:
    """Name of the lock file that stands in for an image."""
    repository = re.split(r"[:@]", image.rsplit("/", 1)[-1])[0]
    framework = _FRAMEWORKS.get(repository)
    if framework is None or (framework != _BASE and not _lock(framework).is_file()):
        known = ", ".join(sorted(_FRAMEWORKS))
        raise ImageError(
            f"the embedded cloud cannot run image {image}: it has no container engine and stands in for these "
            f"repositories only: {known}"
        )
    return framework


def environment(framework: str, requirements: bytes | None = None) -> Path:
    """The environment of a framework, with a job's own requirements on top where it has some; built if need be."""
    lock = _lock(framework).read_bytes() if framework != _BASE else b""
    base = _built(framework, lock, lambda folder: _build(folder, _lock(framework) if lock else None))
    if not requirements:
        return base
    wanted = lock + b"\n--\n" + requirements
    return _built(f"{framework}-with", wanted, lambda folder: _build_on(base, folder, requirements))


def layer(parent: Path, folder: Path) -> Path:
    """A new environment that sees everything of its parent and can be written to without changing it."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    packages = [_packages(parent), *_inherited(parent)]
    (_packages(folder) / "_parent.pth").write_text("".join(f"{path}\n" for path in packages))
    return folder


def _lock(framework: str) -> Path:
    return _LOCKS / f"{framework}.lock"


def _packages(folder: Path) -> Path:
    return folder / "lib" / _PYTHON / "site-packages"


def _inherited(folder: Path) -> list[str]:
    try:
        return (_packages(folder) / "_parent.pth").read_text().split()
    except FileNotFoundError:
        return []


def _built(name: str, content: bytes, build: Callable[[Path], None]) -> Path:
    python = f"{sys.implementation.cache_tag}-{sys.base_prefix}".encode()
    digest = hashlib.sha256(python + b"\0" + content).hexdigest()[:16]
    folder = paths.image_cache() / f"{name}-{digest}"
    if (folder / _COMPLETE).exists():
        return folder
    with _locked(folder.with_suffix(".lock")):
        if not (folder / _COMPLETE).exists():  # nobody else built it while we waited
            _LOG.info("building environment %s", folder.name)
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            (folder / _COMPLETE).touch()  # written last: half an environment is none
    return folder


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder: Path, lock: Path | None) -> None:
    pip = _own_pip()
    venv.EnvBuilder(symlinks=True, with_pip=not pip).create(folder)
    for part in pip:
        shutil.copytree(part, _packages(folder) / part.name)
    if lock:
        _pip(folder, "--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", str(lock))


def _own_pip() -> list[Path]:
    """The pip this program runs with; copying it takes a tenth of the time of unpacking Python's bundled one."""
    try:
        files = importlib.metadata.files("pip") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    tops = {file.parts[0]: Path(str(file.locate())) for file in files if file.parts[0].startswith("pip")}
    return [next(parent for parent in path.parents if parent.name == top) for top, path in tops.items()]


def _build_on(base: Path, folder: Path, requirements: bytes) -> None:
    layer(base, folder)
    listed = folder / "requirements.txt"
    listed.write_bytes(requirements)
    _pip(folder, "-r", str(listed))


def _pip(folder: Path, *arguments: str) -> None:
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input", *arguments]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "PYTHON"))}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if "error" in line.lower()] or [done.stderr.strip()]
        raise ImageError(f"the environment could not be built: {lines[-1][-500:]}")
