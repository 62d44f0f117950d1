"""What a platform and a job's own ``max_price`` allow."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sagefit.catalog import price
from sagefit.errors import REFUSED, SagefitError
from sagefit.job.key import Key
from sagefit.job.problem import Problem
from sagefit.paths import display
from sagefit.planning.cost import reachable, worst_path
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.planned import PlannedAttempt


def check_max_price(plan: JobPlan, region: str) -> None:
    """Refuse a job whose worst case is above its own ``max_price``. Repeats after errors of AWS are not included.

    Raises SagefitError with exit code 4, also when a price is missing, because the limit then cannot be checked.
    """
    job, steps = plan.job, plan.steps
    if job.max_price is None:
        return
    worst = plan.worst_case_usd(region)
    where = f"{display(job.path)}: max_price"
    if worst is None:
        types = (each.instance_type for attempt in (*steps, *reachable(plan.attempts)) for each in attempt.instances)
        missing = next(ml_type for ml_type in types if price(ml_type, region) is None)
        raise SagefitError(
            f"{where}: no price of {missing} in {region} is known, so {job.max_price:.2f} USD cannot be promised",
            hint="remove max_price or use an instance type whose price is known",
            exit_code=REFUSED,
        )
    if worst > job.max_price:
        estimated = " (by estimated prices)" if plan.prices_estimated(region) else ""
        path = " > ".join(attempt.name for attempt in (*steps, *(worst_path(plan.attempts, region) or ())))
        raise SagefitError(
            f"{where}: a run can cost {worst:.2f} USD at worst in {region}{estimated}, by way of {path}, and the limit "
            f"is {job.max_price:.2f} USD",
            hint="lower max_runtime, tuning.max_jobs or the number of attempts, take cheaper types, or raise max_price",
            exit_code=REFUSED,
        )


def allowed_problems(plan: JobPlan, allowed: Collection[str]) -> Iterator[Problem]:
    """Steps and attempts on types that the platform does not allow; an empty ``allowed`` allows all.

    Attempts are made without the platform, so that they are the same in every account. If an account does not allow a
    type, the job file must avoid it.
    """
    job = plan.job
    for field, attempt in _places(plan):
        other = [each.instance_type for each in attempt.instances if each.instance_type not in allowed]
        if allowed and other:
            yield Problem(
                field,
                f"{attempt.label} runs on {', '.join(other)}, and the platform {job.platform} allows "
                f"{', '.join(sorted(allowed))} only",
                "list the types to choose from in resources.instance_type, or extend the platform's "
                "allowed_instance_types",
            )


def _places(plan: JobPlan) -> Iterator[tuple[Key, PlannedAttempt]]:
    """Each step and attempt, and where the job file says on what it runs."""
    for index, step in enumerate(plan.steps):
        yield ("processing", index, "resources", "instance_type"), step
    groups, written = plan.job.resources.instance_groups, plan.job.written_attempts or []
    for index, attempt in enumerate(plan.attempts):
        own = index < len(written) and written[index].instance_type
        shared: Key = ("resources", "instance_groups" if groups else "instance_type")
        yield ("attempts", index, "instance_type") if own else shared, attempt
