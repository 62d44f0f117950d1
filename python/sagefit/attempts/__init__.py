"""The attempts of a job with nothing left to a default, what is predicted for each, and what a run can cost."""

from __future__ import annotations

from sagefit.attempts import market
from sagefit.attempts.auto import graph
from sagefit.attempts.cost import attempt_usd, is_estimated, repeats_note, usd_per_hour, worst_case_usd
from sagefit.attempts.limits import check_allowed, check_max_price, check_services
from sagefit.attempts.on_cpu import predicted_on_cpu
from sagefit.attempts.planned import PlannedAttempt, fill
from sagefit.attempts.steps import plan_steps, step_as_attempt
from sagefit.catalog.choose import Candidate
from sagefit.job import Attempt, Job
from sagefit.memory.read import read

__all__ = [
    "PlannedAttempt",
    "attempt_usd",
    "check_allowed",
    "check_max_price",
    "check_services",
    "graph",
    "is_estimated",
    "plan_attempts",
    "plan_steps",
    "predicted_on_cpu",
    "repeats_note",
    "step_as_attempt",
    "usd_per_hour",
    "worst_case_usd",
]


def plan_attempts(job: Job) -> list[PlannedAttempt]:
    """The attempts of ``job`` in order: those that it writes out, or for ``auto`` those that its memory calls for.

    The same job gives the same attempts on every machine. Raises SagefitError, with exit code 3 when ``auto`` finds
    no instance that fits, and 2 when the attempts together are more than the services take.
    """
    written = job.written_attempts
    if written is None:
        workload = read(job)
        attempts = graph(job, workload, market.choices(job, workload))
    else:
        attempts = [fill(job, attempt, _fit(job, attempt)) for attempt in written]
    check_services(job, attempts)
    return attempts


def _fit(job: Job, attempt: Attempt) -> Candidate | None:
    """What is predicted for a written attempt; None where neither job file nor earlier runs say what it needs."""
    workload = read(job, {**job.hyperparameters, **attempt.hyperparameters})
    if workload.model is None:
        return None
    return market.worst(job, workload, fill(job, attempt))
