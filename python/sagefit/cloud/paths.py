"""Where the embedded cloud keeps its files."""

from __future__ import annotations

import os
from pathlib import Path

from sagefit.paths import home, user_cache


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
    return user_cache() / "images"


def private(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open`: files only their owner can read."""
    return os.open(path, flags, 0o600)


def terraform_folder(instance: str) -> Path:
    """Where Terraform keeps the states of what is in one cloud, and its own files: they end with that cloud."""
    return cloud_home() / "terraform" / instance
