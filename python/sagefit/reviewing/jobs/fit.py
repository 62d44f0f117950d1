"""Whether the attempts of a job in a plan fit in memory.

The plan gives their instances and hyperparameters; the job file gives the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sagefit.catalog import instances
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.machine.definition import Definition
from sagefit.paths import JOBS
from sagefit.planning import JobPlan, PlannedAttempt
from sagefit.planning.candidate import Candidate
from sagefit.planning.market import worst


@dataclass(frozen=True)
class Fit:
    """An attempt and its prediction; ``candidate`` is None when no prediction is possible, and ``why`` says why."""

    attempt: PlannedAttempt
    candidate: Candidate | None
    why: str = ""

    @property
    def verdict(self) -> str:
        """FITS, RISKY, OOM or UNKNOWN."""
        return self.candidate.verdict if self.candidate else "UNKNOWN"

    def needs(self) -> Iterator[tuple[str, float, float, float, float]]:
        """For GPU and host: what, point, upper bound, usable GiB, share."""
        candidate = self.candidate
        prediction = candidate.prediction if candidate else None
        if candidate and prediction:
            if prediction.gpu and candidate.usable_gpu_gib and candidate.gpu_share is not None:
                yield "GPU", prediction.gpu.point, prediction.gpu.upper, candidate.usable_gpu_gib, candidate.gpu_share
            if candidate.host_share is not None:
                host = prediction.host
                yield "host", host.point, host.upper, candidate.usable_host_gib, candidate.host_share

    def as_json(self) -> dict[str, Any]:
        """As in the JSON report."""
        attempt = self.attempt
        return {
            "name": attempt.name,
            "instance_type": attempt.instance_type,
            "instance_count": attempt.instance_count,
            **({"instance_groups": [g._asdict() for g in attempt.instance_groups]} if attempt.instance_groups else {}),
            "spot": attempt.spot,
            "max_runtime_seconds": attempt.max_runtime_seconds,
            "next": attempt.next,
            "verdict": self.verdict,
            "reason": self.candidate.reason if self.candidate else self.why,
            **{
                f"{what.lower()}_gib": {
                    "point": round(point, 4),
                    "upper": round(upper, 4),
                    "usable": round(usable, 4),
                    "share": round(share, 4),
                }
                for what, point, upper, usable, share in self.needs()
            },
        }  # fmt: skip


def fits(definition: Definition, job_plan: JobPlan | str) -> list[Fit]:
    """Each attempt as it is planned, judged by the memory block of the job file.

    ``job_plan``: the plan of that job file, or why there is none (see `described`).
    """
    if isinstance(job_plan, str):
        return [Fit(attempt, None, job_plan) for attempt in definition.attempts]
    return [_fit(job_plan, definition, attempt) for attempt in definition.attempts]


def described(name: str, job_plan: JobPlan | None = None) -> JobPlan | str:
    """The plan of a job's file, which is in ``jobs/`` where none is given; else why nothing can be judged by it."""
    if job_plan is None:
        if not any((JOBS / f"{name}{suffix}").is_file() for suffix in (".yaml", ".yml")):
            return f"no job file jobs/{name}.yaml here"
        try:
            job_plan = JobPlan(load_job(name, uploads=False))
        except SagefitError as error:
            return f"the job file cannot be read: {error.message.splitlines()[0]}"
    return "the job file has no memory block" if job_plan.job.memory is None else job_plan


def _fit(job_plan: JobPlan, definition: Definition, attempt: PlannedAttempt) -> Fit:
    for each in attempt.instances:
        if each.instance_type not in instances():
            return Fit(attempt, None, f"{each.instance_type} is not in the catalog")
    try:
        workload = job_plan.workload(definition.hyperparameters[attempt.name])
        if workload.model is None:
            return Fit(attempt, None, "the job file does not name a model")
        return Fit(attempt, worst(job_plan.job, workload, attempt))
    except SagefitError as error:
        return Fit(attempt, None, error.message.splitlines()[0])
