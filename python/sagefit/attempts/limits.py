"""What a platform and a job's own ``max_price`` allow."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sagefit.attempts.cost import is_estimated, reachable, worst_case_usd, worst_path
from sagefit.attempts.planned import PlannedAttempt
from sagefit.catalog import price
from sagefit.errors import REFUSED, SagefitError
from sagefit.job import Job
from sagefit.paths import display


def check_max_price(job: Job, attempts: Sequence[PlannedAttempt], region: str) -> None:
    """Refuse a job whose worst case is above its own ``max_price``.

    Raises SagefitError with exit code 4, also when a price is missing and the limit cannot be kept.
    """
    if job.max_price is None:
        return
    worst = worst_case_usd(attempts, region)
    where = f"{display(job.path)}: max_price"
    if worst is None:
        missing = next(a.instance_type for a in reachable(attempts) if price(a.instance_type, region) is None)
        raise SagefitError(
            f"{where}: no price of {missing} in {region} is known, so {job.max_price:.2f} USD cannot be promised",
            hint="remove max_price or use an instance type whose price is known",
            exit_code=REFUSED,
        )
    if worst > job.max_price:
        estimated = " (by estimated prices)" if is_estimated(attempts, region) else ""
        path = " > ".join(attempt.name for attempt in worst_path(attempts, region) or ())
        raise SagefitError(
            f"{where}: a run can cost {worst:.2f} USD at worst in {region}{estimated}, by way of {path}, and the limit "
            f"is {job.max_price:.2f} USD",
            hint="lower max_runtime or the number of attempts, choose cheaper instances, or raise max_price",
            exit_code=REFUSED,
        )


def check_allowed(job: Job, attempts: Sequence[PlannedAttempt], allowed: Collection[str]) -> None:
    """Refuse attempts on types that the platform does not allow; an empty ``allowed`` allows all.

    Attempts are made without the platform, so that they are the same in every account; what an account leaves out is
    for the job file to say. Raises SagefitError (exit code 2).
    """
    for attempt in attempts:
        if allowed and attempt.instance_type not in allowed:
            raise SagefitError(
                f"{display(job.path)}: attempt {attempt.name} runs on {attempt.instance_type}, and the platform "
                f"{job.platform} allows {', '.join(sorted(allowed))} only",
                hint="list the types to choose from in resources.instance_type, or extend the platform's "
                "allowed_instance_types",
            )
