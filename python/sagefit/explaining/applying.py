"""Writes a change that was proposed."""

from __future__ import annotations

import os
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.explaining.explanation import Explanation
from sagefit.job import Job
from sagefit.memory.peaks import path_of, save


def apply(found: Explanation, number: int, job: Job) -> Path:
    """Change the job file as proposal ``number``, from 1, says, and return which file was written.

    The file is written in one step: nobody reads half of it. Raises SagefitError for a number that there is not.
    """
    if not 1 <= number <= len(found.remedies):
        there = f"the changes are 1 to {len(found.remedies)}" if found.remedies else "there is no change to apply"
        raise SagefitError(f"--apply {number}: {there}", hint="without --apply, diagnose shows them")
    text = found.remedies[number - 1].text
    if text is None:
        save(job, [found.record])
        return path_of(job)
    path = job.path
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(text.encode("utf-8"))
    partial.chmod(path.stat().st_mode & 0o777)
    partial.replace(path)
    return path
