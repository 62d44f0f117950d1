"""What a run that completed teaches of the job's size."""

from __future__ import annotations

import contextlib

from sagefit.errors import SagefitError
from sagefit.planning import JobPlan
from sagefit.running import RunRecord
from sagefit.size.measured import saving_of


def cheaper(run: RunRecord, plan: JobPlan | None) -> str:
    """In words, a cheaper instance that would have held the last attempt of a run that completed; empty without one.

    ``plan`` is that of the run's job file as it is now.
    """
    if plan is None or not run.succeeded or not run.attempts:
        return ""
    last, region = run.attempts[-1], run.run.platform.region
    used = last.host_peak_gib, last.gpu_peak_gib
    with contextlib.suppress(SagefitError):  # the job file was changed since, and its memory block contradicts itself
        if saving := saving_of(plan, last.name, (last.instance_type, last.instance_count), used, region):
            return saving.text
    return ""
