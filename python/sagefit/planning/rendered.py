"""``NAME.tfvars`` on disk, guarded against losing somebody's edits.

A file whose digest does not match was edited by hand, and a file without one was never ours: both are refused, never
replaced.
"""

from __future__ import annotations

import os
from pathlib import Path

from sagefit.console import command
from sagefit.errors import REFUSED, SagefitError
from sagefit.job import Job
from sagefit.paths import display
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.tfvars import HEADER, digest


def write(plan: JobPlan) -> tuple[Path, bool]:
    """Write a plan's text to `Job.tfvars`; returns its path and whether its content changed.

    Raises SagefitError (exit code 4) when the file there was edited by hand or not written by Sagefit.
    """
    path, text = plan.job.tfvars, plan.text
    if path.exists():
        old = path.read_text(encoding="utf-8")
        if old == text:
            return path, False
        _refuse_foreign(path, old, plan.job)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return path, True


def check_rendered(plan: JobPlan) -> None:
    """Raise SagefitError (exit code 1) unless the file on disk is what the job renders to."""
    path = plan.job.tfvars
    if not path.exists() or path.read_text(encoding="utf-8") != plan.text:
        state = "is out of date" if path.exists() else "does not exist"
        raise SagefitError(
            f"{display(path)} {state}", hint=f"run: {command('render', plan.job.reference)}", exit_code=1
        )


def _refuse_foreign(path: Path, old: str, job: Job) -> None:
    header = HEADER.match(old)
    if header and digest(old[header.end() + 1 :]) == header["digest"]:
        return
    what = "was edited by hand since Sagefit rendered it" if header else "was not written by Sagefit"
    raise SagefitError(
        f"{display(path)} {what}, so it is not replaced",
        hint=f"move the change into {display(job.path)} and delete {path.name}, or keep the file under another name",
        exit_code=REFUSED,
    )
