"""Paths in a checkout. Only this module knows how far the repository root is from its own file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "jobs"
PLATFORMS = ROOT / "platforms"
EXAMPLES = ROOT / "examples"
ACCEPTANCE = ROOT / "acceptance"
JOB_ROOT = ROOT / "job"
TRAINING_JOB_MODULE = ROOT / "modules" / "training-job"
INSTANCES_CSV = TRAINING_JOB_MODULE / "instances.csv"
FAILURES_JSON = TRAINING_JOB_MODULE / "failures.json"
IMAGES_JSON = TRAINING_JOB_MODULE / "images.json"
LIMITS_JSON = TRAINING_JOB_MODULE / "limits.json"
ENVIRONMENT_JSON = TRAINING_JOB_MODULE / "environment.json"
SECRETS_JSON = TRAINING_JOB_MODULE / "secrets.json"


def home() -> Path:
    """The folder for everything Sagefit writes that is not committed: ``$SAGEFIT_HOME`` or ``.sagefit``."""
    return Path(os.environ.get("SAGEFIT_HOME") or ROOT / ".sagefit").resolve()


def shut_home() -> None:
    """Make ``.sagefit`` private, also one that an earlier version left open: states and plans hold sensitive data.

    A folder that ``SAGEFIT_HOME`` names keeps its permissions; only what Sagefit creates in it is private.
    """
    folder = ROOT / ".sagefit"
    with contextlib.suppress(OSError):
        if folder.stat().st_mode & 0o077 and folder.stat().st_uid == os.getuid():
            folder.chmod(0o700)


def user_cache() -> Path:
    """This user's folder for what can be made again, shared between checkouts: ``sagefit`` in the XDG cache folder.

    When that folder is not writable, as in a read-only home, the cache is in ``home`` and belongs to this checkout.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "sagefit"
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))  # noqa: PTH110 - of others it is quiet
    writable = there.is_dir() and os.access(
        there, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
    )
    return folder if writable else home() / "cache"


def display(path: Path) -> str:
    """``path`` as a user at the repository root would type it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def private_folder(path: Path) -> Path:
    """Make a folder, and those above it that are missing, for their owner alone; returns it."""
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    return path
