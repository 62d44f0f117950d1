"""The processing steps of a job in the form of attempts: what they run on, how long, and so what they cost."""

from __future__ import annotations

from sagefit.job import Job
from sagefit.job.processing_model import StepResources
from sagefit.planning.planned import PlannedAttempt, texts


def plan_steps(job: Job) -> list[PlannedAttempt]:
    """Every step of ``job``, in order: a run goes through all of them."""
    return [step_as_attempt(step.name, step.resources, texts(step.environment)) for step in job.processing]


def step_as_attempt(name: str, resources: StepResources, environment: dict[str, str] | None = None) -> PlannedAttempt:
    """One step as an attempt, with the name of its states; it has no edges."""
    return PlannedAttempt(
        name=f"processing {name}",
        reason="",
        instance_type=resources.instance_type,
        instance_count=resources.instance_count,
        spot=False,
        hyperparameters={},
        environment=environment or {},
        volume_size_gb=resources.volume_size_gb,
        keep_alive_seconds=0,
        max_runtime_seconds=resources.max_runtime,
        max_wait_seconds=None,
        max_pending_seconds=None,
        next={},
    )
