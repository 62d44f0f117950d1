"""Where the embedded cloud keeps its files."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from sagefit.errors import SagefitError

_MARK = Path("modules", "training-job", "instances.csv")


@cache
def repository() -> Path:
    """The checkout this package runs in: found from the package first, then from the working directory."""
    for start in (Path(__file__).resolve(), Path.cwd().resolve() / "x"):
        for folder in start.parents:
            if (folder / _MARK).is_file():
                return folder
    raise SagefitError(
        f"no Sagefit checkout found: {_MARK} is in no folder above {Path(__file__).parent} or {Path.cwd()}",
        hint="run from inside a Sagefit checkout",
    )


def instance_table() -> Path:
    """The one table of instance types, shared with the Terraform module."""
    return repository() / _MARK


def home() -> Path:
    """The state directory: ``SAGEFIT_HOME``, else ``.sagefit`` in the checkout."""
    named = os.environ.get("SAGEFIT_HOME")
    return Path(named).expanduser().resolve() if named else repository() / ".sagefit"


def cloud_home() -> Path:
    """The embedded cloud's part of the state directory, readable by its owner only."""
    folder = home() / "cloud"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def image_cache() -> Path:
    """Environments built for images; shared between checkouts, because they are named by what is in them."""
    named = os.environ.get("SAGEFIT_IMAGES")
    if named:
        return Path(named).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sagefit" / "images"


def private(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open`: files only their owner can read."""
    return os.open(path, flags, 0o600)
