"""Environments that stand in for training images: one virtual environment for each list of packages.

There is no container engine here. What an image brings is reduced to Python and its packages, from a list in
``images/``; an environment is named by what is in it, built once, and never changed afterwards.

A list is a lock file with hashes where one fits every machine. PyTorch's and TensorFlow's builds differ by machine
(with CUDA, for the CPU), so theirs are versions only (``.txt``), and pip chooses the build. PySpark is source only, and
building it is copying it; the Java that it runs on is a package, too.
"""

from __future__ import annotations

import importlib.metadata
import logging
import re
import shutil
import venv
from collections.abc import Callable
from pathlib import Path

from sagefit import environments
from sagefit.cloud import paths
from sagefit.errors import SagefitError

_LOG = logging.getLogger(__name__)
_LISTS = Path(__file__).parent / "images"
_PROGRAMS = Path(__file__).parent / "programs"
#: Last part of an image's repository -> name of the list. "python" has no packages.
_FRAMEWORKS = {
    "sagemaker-scikit-learn": "sklearn",
    "sagemaker-xgboost": "xgboost",
    "pytorch-training": "pytorch",
    "huggingface-pytorch-training": "huggingface",
    "sagemaker-spark-processing": "spark",
    "tensorflow-training": "tensorflow",
    "python": "base",
}
_BASE = "base"
#: Lists that come on top of another.
_ON = {"huggingface": "pytorch"}


class ImageError(Exception):
    """An image that cannot be stood in for; the text says what can."""


def framework_of(image: str) -> str:
    """Name of the list that stands in for an image."""
    repository = re.split(r"[:@]", image.rsplit("/", 1)[-1])[0]
    framework = _FRAMEWORKS.get(repository)
    if framework is None:
        known = ", ".join(sorted(_FRAMEWORKS))
        raise ImageError(
            f"the embedded cloud cannot run image {image}: it has no container engine and stands in for these "
            f"repositories only: {known}"
        )
    return framework


def environment(framework: str, requirements: bytes | None = None) -> Path:
    """The environment of a framework, with a job's own requirements on top where it has some; built if need be."""
    listed = _packages_of(framework)
    content = listed.read_bytes() if listed else b""
    if framework in _ON:
        base = _on_top(framework, environment(_ON[framework]), content)
    else:
        base = _built(framework, content, lambda folder: _build(folder, listed))
    return _on_top(f"{framework}-with", base, requirements) if requirements else base


def versions(framework: str) -> dict[str, str]:
    """Name and installed version of the packages that a framework's list names; none for what has no list."""
    if not any(_LISTS.glob(f"{framework}.*")):
        return {}
    listed = _packages_of(framework)
    names = re.findall(r"^([\w.-]+)==", listed.read_text(), re.MULTILINE) if listed else []
    where = [str(environments.packages(environment(framework)))]
    found = {found.name: found.version for found in importlib.metadata.distributions(path=where)}
    return (versions(_ON[framework]) if framework in _ON else {}) | {n: found[n] for n in names if n in found}


def layer(parent: Path, folder: Path) -> Path:
    """A new environment that sees everything of its parent and can be written to without changing it."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    seen = [environments.packages(parent), *_inherited(parent)]
    (environments.packages(folder) / "_parent.pth").write_text("".join(f"{path}\n" for path in seen))
    return folder


def put_programs(framework: str, folder: Path) -> None:
    """Put what an image has on its PATH beside Python into an environment: the scripts of ``programs/FRAMEWORK/``."""
    for script in (_PROGRAMS / framework).glob("*.py"):
        program = folder / "bin" / script.stem.replace("_", "-")
        shutil.copyfile(script, program)
        program.chmod(0o755)


def is_pristine(folder: Path) -> bool:
    """Whether nobody has installed anything into a layer."""
    return [path.name for path in environments.packages(folder).iterdir()] == ["_parent.pth"]


def _packages_of(framework: str) -> Path | None:
    return None if framework == _BASE else next(_LISTS.glob(f"{framework}.*"))


def _inherited(folder: Path) -> list[str]:
    try:
        return (environments.packages(folder) / "_parent.pth").read_text().splitlines()
    except FileNotFoundError:
        return []


def _built(name: str, content: bytes, build: Callable[[Path], None]) -> Path:
    folder = paths.image_cache() / f"{name}-{environments.digest(content)}"
    try:
        return environments.built(folder, build)
    except SagefitError as error:
        raise ImageError(error.message) from error
    except OSError as error:
        raise ImageError(f"its environment {folder.name} cannot be made: {error}") from error


def _build(folder: Path, listed: Path | None) -> None:
    _LOG.info("building environment %s", folder.name)
    exact = listed if listed and listed.suffix == ".lock" else None
    environments.create(folder, exact)
    if listed and not exact:
        environments.install(folder, "--only-binary", ":all:", "-r", str(listed))


def _on_top(name: str, base: Path, requirements: bytes) -> Path:
    def build(folder: Path) -> None:
        _LOG.info("building environment %s", folder.name)
        listed = layer(base, folder) / "requirements.txt"
        listed.write_bytes(requirements)
        environments.install(folder, "-r", str(listed))

    return _built(name, base.name.encode() + b"\0" + requirements, build)
