"""How many hosts and processes a plan counts, where that is not what the job file or the launcher makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sagefit.job import Job
from sagefit.job.problem import Problem
from sagefit.planning.planned import PlannedAttempt

_SWITCH = "SAGEFIT_TORCHRUN"
_SETTING = "sagemaker_torch_distributed_enabled"
"""A hyperparameter of SageMaker's toolkit, which the launcher takes for the same as `_SWITCH`."""


def launch_remarks(job: Job, attempts: Sequence[PlannedAttempt]) -> Iterator[Problem]:
    """What to look at again in the attempts that were planned: processes of a host, and the number of hosts."""
    yield from _started_once(job, attempts)
    yield from _grown(job, attempts)


def _started_once(job: Job, attempts: Sequence[PlannedAttempt]) -> Iterator[Problem]:
    """Where the prediction counts a process for each GPU, and the launcher starts the script once.

    On one host it starts torchrun only where it is asked to, see docs/distributed.md. Nobody knows before a run whether
    a script starts more processes by itself, so this is no error.
    """
    if job.code is None or not job.code.entry_point.endswith(".py") or (job.memory and job.memory.world_size):
        return
    for attempt in attempts:
        asked = {**job.environment, **attempt.environment, **job.hyperparameters, **attempt.hyperparameters}
        gpus = attempt.fit.instance.gpu_count if attempt.fit and attempt.fit.prediction else 0
        if gpus > 1 and attempt.instance_count == 1 and not {_SWITCH, _SETTING} & asked.keys():
            message = (
                f"{attempt.label} has {gpus} GPUs on one host, where the launcher starts the script once, and the "
                f"prediction counts {gpus} processes"
            )
            knob = (
                f'add {_SWITCH}: "true", or leave it if the script starts them itself; memory.world_size: 1 counts one'
            )
            yield Problem(("environment",), message, knob)
            return


def _grown(job: Job, attempts: Sequence[PlannedAttempt]) -> Iterator[Problem]:
    """Where the file says how many hosts, and the first attempt has more of them."""
    written = job.written(("resources", "instance_count"))
    if job.attempts == "auto" and written and attempts and attempts[0].instance_count > job.resources.instance_count:
        message = (
            f"the planner takes {written} or more hosts of a sharded model, and {attempts[0].label} has "
            f"{attempts[0].instance_count}; a step then works on the batches of all of them"
        )
        yield Problem(
            ("resources", "instance_count"), message, "name one resources.instance_type, or give memory.world_size"
        )
