"""What the services, a platform and a job's own ``max_price`` allow."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from sagefit.catalog import price
from sagefit.errors import REFUSED, SagefitError
from sagefit.job import Job
from sagefit.job.images import processor_problems
from sagefit.job.problem import Problem
from sagefit.job.source import Key
from sagefit.job.values import duration
from sagefit.paths import display
from sagefit.planning.cost import reachable, worst_path
from sagefit.planning.planned import PlannedAttempt
from sagefit.planning.shards import shard_problems

if TYPE_CHECKING:
    from sagefit.planning.job_plan import JobPlan

LOOKS = 2600
"""How often a run may look at its training jobs: 25,000 events in a history, 9 for a look, the rest for all else."""
REQUEST_BYTES = 131_072
"""Half of what may pass between two states: a description repeats the request, with what AWS and the run add to it."""
DEFINITION_BYTES = 1_048_576
MOST_HYPERPARAMETERS, MOST_VARIABLES = 100, 99  # of one training job; Sagefit adds a variable of its own


def check_services(job: Job, attempts: Sequence[PlannedAttempt], steps: Sequence[PlannedAttempt]) -> None:
    """Refuse what SageMaker or Step Functions would refuse of all attempts together, or in the middle of a run.

    The Terraform module asks the same of the finished definition; here the answer comes with the job file's own fields
    and lines. Raises SagefitError (exit code 2).
    """
    if found := list(_of_services(job, attempts, steps)):
        raise job.refusal(found)


def _of_services(job: Job, attempts: Sequence[PlannedAttempt], steps: Sequence[PlannedAttempt]) -> Iterator[Problem]:
    if job.written_attempts is None:  # types that the job file names were judged with it
        types = dict.fromkeys(attempt.instance_type for attempt in attempts)
        yield from processor_problems(job, ((("resources", "instance_type"), ml_type) for ml_type in types))
    yield from shard_problems(job, attempts)
    longest = sum(each.longest_seconds for each in (*steps, *attempts))
    interval = job.resources.poll_interval
    if interval and longest > LOOKS * interval:
        yield Problem(
            ("resources", "poll_interval"),
            f"the history of a run holds {LOOKS} looks, and one every {duration(interval)} does not cover the "
            f"{duration(longest)} that its steps and attempts may take together",
            f"raise it to {duration(math.ceil(longest / LOOKS))} or more, remove it, or lower resources.max_runtime",
        )
    total = 0
    for index, attempt in enumerate(attempts):
        field: Key = ("attempts", index) if job.attempts != "auto" else ("hyperparameters",)
        hyperparameters, environment = (
            job.hyperparameters | attempt.hyperparameters,
            job.environment | attempt.environment,
        )
        for what, table, most in (
            ("hyperparameters", hyperparameters, MOST_HYPERPARAMETERS),
            ("environment", environment, MOST_VARIABLES),
        ):
            if len(table) > most:
                yield Problem(
                    field,
                    f"attempt {attempt.name} has {len(table)} entries in {what}, the job's own included; a training "
                    f"job takes {most}",
                    "put the rest into a file of the code",
                )
        size = _bytes(job, hyperparameters, environment)
        total += size
        if size > REQUEST_BYTES:
            yield Problem(
                field,
                f"the request of attempt {attempt.name} has {size:,} bytes or more; {REQUEST_BYTES:,} fit, because the "
                "description of a training job repeats it and 262,144 bytes pass between two states",
                "put long hyperparameters, environment variables and arguments into a file of the code, or shorten "
                "tuning.ranges",
            )
    if total > DEFINITION_BYTES:
        yield Problem(
            ("attempts",),
            f"{len(attempts)} attempts repeat the request, and the definition of the state machine has {total:,} bytes "
            f"or more; it may have {DEFINITION_BYTES:,}",
            "remove attempts, or put long hyperparameters, environment variables and inputs into a file of the code",
        )


def _bytes(job: Job, hyperparameters: object, environment: object) -> int:
    """What the job file itself brings into a request, as Terraform writes it: markup characters take six bytes."""
    parts = job.model_dump(mode="json", include={"inputs", "metrics", "tags", "tuning"})
    arguments = job.code.arguments if job.code else []
    text = json.dumps([hyperparameters, environment, parts, arguments], ensure_ascii=False, separators=(",", ":"))
    return len(text.encode()) + 5 * sum(text.count(letter) for letter in "<>&")


def check_max_price(plan: JobPlan, region: str) -> None:
    """Refuse a job whose worst case is above its own ``max_price``; repeats after errors of AWS do not count in it.

    Raises SagefitError with exit code 4, also when a price is missing and the limit cannot be kept.
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


def check_allowed(plan: JobPlan, allowed: Collection[str]) -> None:
    """Refuse steps and attempts on types that the platform does not allow; an empty ``allowed`` allows all.

    Attempts are made without the platform, so that they are the same in every account; what an account leaves out is
    for the job file to say. Raises SagefitError (exit code 2).
    """
    job = plan.job
    for attempt in (*plan.steps, *plan.attempts):
        other = [each.instance_type for each in attempt.instances if each.instance_type not in allowed]
        if allowed and other:
            raise SagefitError(
                f"{display(job.path)}: {attempt.label} runs on {', '.join(other)}, and the platform "
                f"{job.platform} allows {', '.join(sorted(allowed))} only",
                hint="list the types to choose from in resources.instance_type, or extend the platform's "
                "allowed_instance_types",
            )
