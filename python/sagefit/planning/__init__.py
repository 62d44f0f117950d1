"""A job's plan: its instances, its attempts and the edges between them, the cost of a run, and Terraform's input.

`plan` makes a `JobPlan` of a job; everything else here works out one part of it.
"""

from __future__ import annotations

from sagefit.planning.allowed import allowed_problems, check_max_price
from sagefit.planning.cost import attempt_usd, is_estimated, repeats_note, usd_per_hour, worst_case_usd
from sagefit.planning.job_plan import JobPlan, plan
from sagefit.planning.on_cpu import predicted_on_cpu
from sagefit.planning.planned import PlannedAttempt
from sagefit.planning.steps import step_as_attempt

__all__ = [
    "JobPlan",
    "PlannedAttempt",
    "allowed_problems",
    "attempt_usd",
    "check_max_price",
    "is_estimated",
    "plan",
    "predicted_on_cpu",
    "repeats_note",
    "step_as_attempt",
    "usd_per_hour",
    "worst_case_usd",
]
