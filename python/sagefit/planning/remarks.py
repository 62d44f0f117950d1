"""What to look at again in a plan: it is valid, and rarely what somebody wants."""

from __future__ import annotations

from sagefit.job.problem import Problem
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.launch import launch_remarks
from sagefit.planning.older_gpus import older_gpus


def plan_remarks(plan: JobPlan) -> list[Problem]:
    """Remarks about the types that the job names, and about its attempts if it has any that fit."""
    attempts = plan.proposed if plan.chosen or plan.job.written_attempts is not None else []
    return [*older_gpus(plan), *launch_remarks(plan.job, attempts)]
