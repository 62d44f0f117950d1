"""The image that `sagefit image` made of a job's own Dockerfile: ``NAME.image.json`` beside the job file.

The file is committed: which image a run gets must not depend on whose machine rendered the job, nor on where a tag
points today.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sagefit.errors import SagefitError
from sagefit.job.model import Job
from sagefit.paths import display

SCHEMA = 1
_SKIPPED = {"__pycache__", ".git", ".DS_Store"}


@dataclass(frozen=True)
class PinnedImage:
    """What was pushed: ``tag`` for people, ``digest`` for the request, ``context`` for the sources it was built from.

    A digest names the content of an image, so it is the same in every registry that the image is pushed to.
    """

    tag: str
    digest: str
    context: str


def pin_path(job: Job) -> Path:
    """The file of ``job``."""
    return job.path.with_suffix(".image.json")


def load_pin(job: Job) -> PinnedImage | None:
    """The image that is pinned for ``job``; None where it builds none, or none was pushed yet.

    Raises SagefitError for a file that cannot be read.
    """
    path = pin_path(job)
    if job.image.build is None or not path.exists():
        return None
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
        pinned = PinnedImage(**kept["image"])
        if kept["schema"] == SCHEMA and re.fullmatch(r"sha256:[0-9a-f]{64}", pinned.digest):
            return pinned
        why = f"schema {kept['schema']} with digest {pinned.digest!r}"
    except (ValueError, TypeError, KeyError) as error:
        why = str(error)
    raise SagefitError(
        f"{display(path)}: not a file of a pinned image ({why})",
        hint=f"restore it, or delete it and run: sagefit image {job.reference}",
    )


def save_pin(job: Job, pinned: PinnedImage) -> Path:
    """Write the file of ``job``; returns its path."""
    path = pin_path(job)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps({"schema": SCHEMA, "image": asdict(pinned)}, indent=1) + "\n", encoding="utf-8")
    return partial.replace(path)


def context_digest(job: Job) -> str:
    """A digest of all that the Dockerfile of ``job`` can copy: names, contents and whether a file may be executed."""
    folder = job.local(job.image.build or ".")
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not _SKIPPED.intersection(inside.parts):
            executable = bool(path.stat().st_mode & 0o100)
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{inside.as_posix()}\0{executable}\0{content}\0".encode())
    return digest.hexdigest()


def pin_note(job: Job) -> str | None:
    """What a reader of a render or a plan should know about the image that ``job`` builds; None when all is well."""
    if job.image.build is None:
        return None
    pinned = load_pin(job)
    if pinned is None:
        return f"image.build: no image of {job.image.build!r} is pinned yet; sagefit image builds and pins it"
    if pinned.context != context_digest(job):
        return f"image.build: the pinned image is older than its sources in {job.image.build!r}; run sagefit image"
    return None
