"""What SageMaker and Step Functions allow of all attempts together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from sagefit.job import Job
from sagefit.job.images import processor_problems
from sagefit.job.key import Key
from sagefit.job.limits import most as most_of
from sagefit.job.problem import Problem
from sagefit.job.values import duration
from sagefit.planning.planned import PlannedAttempt
from sagefit.planning.shards import shard_problems

LOOKS = 2600
"""How often a run may poll its training jobs: a history has 25,000 events, a poll takes 9, the rest is for all else."""
LOOKS_PLANNED, LEAST_INTERVAL = 2000, 30
"""The default interval: the seconds of all attempts divided by this many polls, and at least 30 seconds."""
YEAR = 365 * 86400
REQUEST_BYTES = 131_072
"""Half of the limit between two states: a description repeats the request, and AWS and the run add to it."""
DEFINITION_BYTES = 1_048_576


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
            f"a run can check its jobs {LOOKS:,} times; every {duration(interval)} that is "
            f"{duration(LOOKS * interval)}, and its steps and attempts may take {duration(longest)}",
            f"raise it to {duration(math.ceil(longest / LOOKS))} or more, remove it, or lower resources.max_runtime",
        )
    deadline = LOOKS * (interval or max(LEAST_INTERVAL, math.ceil(longest / LOOKS_PLANNED)))
    if deadline > YEAR:
        yield Problem(
            ("resources", "max_runtime"),
            f"the steps and attempts may take {duration(longest)} together, to which a run adds 30 % for delays; an "
            "execution may take a year (Step Functions)",
            "lower it, max_wait or max_pending, or remove attempts",
        )
    total = 0
    for index, attempt in enumerate(attempts):
        field: Key = ("attempts", index) if job.attempts != "auto" else ("hyperparameters",)
        hyperparameters, environment = (
            job.hyperparameters | attempt.hyperparameters,
            job.environment | attempt.environment,
        )
        for what, table, most in (
            ("hyperparameters", hyperparameters, most_of("hyperparameters")),
            ("environment", environment, most_of("environment")),
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
    """The bytes that the job file adds to a request, as Terraform writes it: markup characters take six bytes."""
    parts = job.model_dump(mode="json", include={"inputs", "metrics", "tags", "tuning"})
    arguments = job.code.arguments if job.code else []
    text = json.dumps([hyperparameters, environment, parts, arguments], ensure_ascii=False, separators=(",", ":"))
    return len(text.encode()) + 5 * sum(text.count(letter) for letter in "<>&")
