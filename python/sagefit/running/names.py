"""Names of a run's training jobs: <run>-<index>, with a letter where an attempt was repeated, and more of a trial."""

from __future__ import annotations

import re

_TRIAL = re.compile(r"-\d{3,5}-[0-9a-z]+$")


def attempt_job(training_job: str) -> str:
    """The job of an attempt that a training job belongs to: its tuning job for a trial, else itself."""
    return _TRIAL.sub("", training_job)


def attempt_index(training_job: str) -> int:
    """The attempt that a training job's name ends with, or that of its tuning job."""
    return int(attempt_job(training_job).rsplit("-", 1)[1].rstrip("abcdefghijklmnopqrstuvwxyz"))
