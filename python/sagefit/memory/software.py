"""Which releases of torch and transformers a script runs on, where the image tells it."""

from __future__ import annotations

import re

from sagefit.job import Job
from sagefit.job.image_table import frameworks, numbers

Release = tuple[int, int]

FUSED_BY_DEFAULT: tuple[Release, Release] = ((4, 55), (2, 8))
"""From these releases of transformers and torch on, ``TrainingArguments.optim`` is ``adamw_torch_fused``
(transformers 4.55, 4.56 and 5.3, ``training_args.py``)."""

_LONGEST = 100_000
_PINNED = re.compile(r"\s*(torch|transformers)(?![\w.-])\s*(?:\[[^\]]*\])?\s*([^;#]*)", re.IGNORECASE)


def torch(job: Job) -> Release | None:
    """The release of torch in one of AWS's images, or an older one than what runs; None where it is not known."""
    family, exact = _image(job)
    if family == "pytorch":
        return _release(exact) if "torch" not in _replaced(job) else None
    tag = next(iter(frameworks()["huggingface"].versions[exact].values())) if family == "huggingface" else ""
    return _release(tag) if tag and "torch" not in _replaced(job) else None


def transformers(job: Job) -> Release | None:
    """The same of transformers."""
    family, exact = _image(job)
    return _release(exact) if family == "huggingface" and "transformers" not in _replaced(job) else None


def fuses_by_default(job: Job) -> bool:
    """Whether the Trainer takes a fused AdamW when nobody names an optimizer."""
    runs_on = (transformers(job), torch(job))
    return not any(map(older_than, runs_on, FUSED_BY_DEFAULT))


def older_than(runs_on: Release | None, first: Release) -> bool:
    """Whether a release older than ``first`` may run."""
    return runs_on is None or runs_on < first


def _image(job: Job) -> tuple[str, str]:
    """Framework and exact version of one of AWS's images; empty where it is another or is not known."""
    family = frameworks().get(job.image.framework or "")
    exact = family.exact(job.image.version) if family else None
    return (family.name, exact) if family and exact else ("", "")


def _release(version: str) -> Release | None:
    found = re.match(r"\d{1,4}\.\d{1,4}", version)
    return (numbers(found[0])[0], numbers(found[0])[1]) if found else None


def _replaced(job: Job) -> set[str]:
    """Packages whose release ``requirements.txt`` may lower: the container installs what this file names."""
    if job.code is None:
        return set()
    path = job.local(job.code.source_dir) / "requirements.txt"
    if not path.is_file() or path.stat().st_size > _LONGEST:
        return set()
    lines = map(_PINNED.match, path.read_text(encoding="utf-8", errors="replace").splitlines())
    named = ((line[1].lower(), line[2].strip()) for line in lines if line)
    return {name for name, bound in named if bound and not re.fullmatch(r">=?\s*[\w.]+", bound)}
