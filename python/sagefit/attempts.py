"""The attempts of a job with every field filled in, and what a run can cost at worst."""

from __future__ import annotations

from dataclasses import dataclass

from sagefit.catalog import price
from sagefit.errors import REFUSED, SagefitError
from sagefit.job import Attempt, Job
from sagefit.job.values import as_text
from sagefit.paths import display

DEFAULT_NAME = "main"


@dataclass(frozen=True)
class PlannedAttempt:
    """One attempt as Terraform gets it: nothing is left to a default. Times are in seconds."""

    name: str
    reason: str
    instance_type: str
    instance_count: int
    spot: bool
    hyperparameters: dict[str, str]
    environment: dict[str, str]
    volume_size_gb: int
    keep_alive_seconds: int
    max_runtime_seconds: int
    max_wait_seconds: int | None
    max_pending_seconds: int | None
    next: dict[str, str]


def plan_attempts(job: Job) -> list[PlannedAttempt]:
    """The attempts of ``job`` in order. ``attempts: auto`` with one instance type is a single attempt."""
    written = [Attempt(name=DEFAULT_NAME)] if job.attempts == "auto" else job.attempts
    return [_fill(job, attempt) for attempt in written]


def _fill(job: Job, attempt: Attempt) -> PlannedAttempt:
    resources = job.resources
    spot = resources.spot if attempt.spot is None else attempt.spot
    pool = resources.warm_pool if isinstance(resources.warm_pool, int) and not spot else 0
    # The rules of the job file have refused "auto" and lists for attempts without a type of their own.
    instance_type = attempt.instance_type or str(resources.instance_type)
    return PlannedAttempt(
        name=attempt.name,
        reason=attempt.reason,
        instance_type=instance_type,
        instance_count=attempt.instance_count or resources.instance_count,
        spot=spot,
        hyperparameters={key: as_text(value) for key, value in attempt.hyperparameters.items()},
        environment={key: as_text(value) for key, value in attempt.environment.items()},
        volume_size_gb=attempt.volume_size_gb or resources.volume_size_gb,
        keep_alive_seconds=pool if attempt.keep_alive_seconds is None else attempt.keep_alive_seconds,
        max_runtime_seconds=attempt.max_runtime_seconds or resources.max_runtime,
        max_wait_seconds=(attempt.max_wait_seconds or resources.max_wait) if spot else None,
        max_pending_seconds=attempt.max_pending_seconds or resources.max_pending,
        next={str(kind): target for kind, target in attempt.next.items()},
    )


def worst_case_usd(attempts: list[PlannedAttempt], region: str) -> float | None:
    """What one run costs if every attempt runs to its limit; None when a price is not known.

    Attempts form a chain of forward edges, so each runs at most once and the sum is a bound. Spot counts in full:
    its saving comes as fewer billed seconds and is not promised.
    """
    total = 0.0
    for attempt in attempts:
        known = price(attempt.instance_type, region)
        if known is None:
            return None
        total += known.usd_per_hour * attempt.instance_count * attempt.max_runtime_seconds / 3600
    return total


def check_max_price(job: Job, attempts: list[PlannedAttempt], region: str) -> None:
    """Refuse a job whose worst case is above its own ``max_price``.

    Raises SagefitError with exit code 4, also when a price is missing and the limit cannot be kept.
    """
    if job.max_price is None:
        return
    worst = worst_case_usd(attempts, region)
    where = f"{display(job.path)}: max_price"
    if worst is None:
        missing = next(a.instance_type for a in attempts if price(a.instance_type, region) is None)
        raise SagefitError(
            f"{where}: no price of {missing} in {region} is known, so {job.max_price:.2f} USD cannot be promised",
            hint="remove max_price or use an instance type whose price is known",
            exit_code=REFUSED,
        )
    if worst > job.max_price:
        raise SagefitError(
            f"{where}: a run can cost {worst:.2f} USD at worst in {region}, and the limit is {job.max_price:.2f} USD",
            hint="lower max_runtime or the number of attempts, choose cheaper instances, or raise max_price",
            exit_code=REFUSED,
        )
