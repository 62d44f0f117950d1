"""What to look at again in a plan: it is valid, and rarely what somebody wants."""

from __future__ import annotations

from sagefit.job.problem import Problem
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.launch import launch_remarks
from sagefit.planning.named_types import older_gpus, retired_types
from sagefit.planning.no_batch import no_batch
from sagefit.planning.overlap import overlap_remarks


def plan_remarks(plan: JobPlan) -> list[Problem]:
    """Remarks about the types that the job names, and about its attempts, or about what comes nearest if none fits."""
    attempts = plan.proposed if plan.chosen or plan.job.written_attempts is not None else []
    return [
        *retired_types(plan.job),
        *older_gpus(plan),
        *no_batch(plan),
        *launch_remarks(plan.job, attempts, plan.candidates),
        *overlap_remarks(plan.job, attempts, plan.steps if attempts else []),
    ]
