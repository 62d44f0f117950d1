"""Environments that stand in for training images: one virtual environment for each list of packages.

There is no container engine here. What an image brings is reduced to Python and its packages, from a list in
``images/``; an environment is named by what is in it, built once, and never changed afterwards.

What an image brings stands in ``NAME.in``. ``NAME.lock``, which ``make lock`` writes, has every version and digest of
it; nothing else is installed. PyTorch's builds differ: the one for the CPU (``NAME-cpu.lock``) is taken where pip's
indexes offer it, else the usual one, with CUDA (``NAME-cuda.lock``). PySpark has no wheel; it is built with what
``NAME-build.lock`` lists. The Java that it runs on is a package, too.
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
LISTS = Path(__file__).parent / "images"
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
#: List -> the package that the image is named after.
_MAIN = {
    "huggingface": "transformers",
    "pytorch": "torch",
    "sklearn": "scikit-learn",
    "spark": "pyspark",
    "tensorflow": "tensorflow",
    "xgboost": "xgboost",
}
#: Image -> the one that it comes on top of.
ON = {"huggingface": "pytorch"}


class ImageError(Exception):
    """An image that cannot be stood in for; the text says what can."""


def framework_of(image: str) -> str:
    """Name of the list that stands in for an image."""
    framework = _FRAMEWORKS.get(_repository(image))
    if framework is None:
        known = ", ".join(sorted(_FRAMEWORKS))
        raise ImageError(
            f"the embedded cloud cannot run image {image}: it has no container engine and stands in for these "
            f"repositories only: {known}"
        )
    return framework


def _repository(image: str) -> str:
    """The last part of the name of an image's repository."""
    return re.split(r"[:@]", image.rsplit("/", 1)[-1])[0]


def environment(framework: str, requirements: bytes | None = None) -> Path:
    """The environment of a framework, with a job's own requirements on top where it has some; built if need be."""
    base = _environment(framework)
    if not requirements:
        return base

    def install(folder: Path) -> None:
        listed = folder / "requirements.txt"
        listed.write_bytes(requirements)
        environments.install(folder, "-r", str(listed))

    return _on_top(f"{framework}-with", base, requirements, install)


def versions(framework: str) -> dict[str, str]:
    """Name and installed version of the packages that a framework's list names; none for what has no list."""
    listed = LISTS / f"{framework}.in"
    if not listed.exists():
        return {}
    names = dict.fromkeys(re.findall(r"^[\w.]+[\w.-]*", listed.read_text(encoding="utf-8"), re.MULTILINE))
    where = [str(environments.packages(environment(framework)))]
    found = {_normal(found.name): found.version for found in importlib.metadata.distributions(path=where)}
    below = versions(ON[framework]) if framework in ON else {}
    return below | {name: found[name] for name in names if name in found}


def stand_in(image: str) -> str | None:
    """Name and locked version of the package that an image is named after, such as ``scikit-learn 1.9.0``.

    ``image`` is the name of a list, or an address. None where nothing stands in for it. Nothing is built.
    """
    framework = image if image in _MAIN else _FRAMEWORKS.get(_repository(image), "")
    main = _MAIN.get(framework)
    for lock in _locks(framework, "", "-cpu", "-cuda") if main else ():
        if found := re.search(rf"^{main}(?:-cpu)?==([\w.]+)", lock.read_text(encoding="utf-8"), re.MULTILINE):
            return f"{main} {found[1]}"
    return None


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


def _environment(framework: str) -> Path:
    locks = _locks(framework, "-build", "")
    builds = _locks(framework, "-cpu", "-cuda")
    content = b"".join(path.read_bytes() for path in (*locks, *builds))
    if framework not in ON:
        return _built(framework, content, lambda folder: environments.create(folder, *locks, one_of=builds))
    base = environment(ON[framework])
    return _on_top(framework, base, content, lambda folder: environments.install_locked(folder, *locks))


def _locks(framework: str, *parts: str) -> list[Path]:
    return [path for part in parts if (path := LISTS / f"{framework}{part}.lock").exists()]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _inherited(folder: Path) -> list[str]:
    try:
        return (environments.packages(folder) / "_parent.pth").read_text().splitlines()
    except FileNotFoundError:
        return []


def _built(name: str, content: bytes, build: Callable[[Path], None]) -> Path:
    folder = paths.image_cache() / f"{name}-{environments.digest(content)}"

    def logged(new: Path) -> None:
        _LOG.info("building environment %s", new.name)
        build(new)

    try:
        return environments.built(folder, logged)
    except SagefitError as error:
        raise ImageError(error.message) from error
    except OSError as error:
        raise ImageError(f"its environment {folder.name} cannot be made: {error}") from error


def _on_top(name: str, base: Path, content: bytes, install: Callable[[Path], None]) -> Path:
    return _built(name, base.name.encode() + b"\0" + content, lambda folder: install(layer(base, folder)))
