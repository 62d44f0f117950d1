"""A job that tunes is planned for the hyperparameters of its search that need most: any trial may get them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sagefit.job import Job
from sagefit.memory.knobs import is_read
from sagefit.memory.prediction import predict
from sagefit.memory.workload import Placement, Workload

_SOMEWHERE = Placement(hosts=1, gpus_per_host=1)  # where needs are compared, not where the job runs
Read = Callable[[Job, Mapping[str, object]], Workload]


def most_demanding(job: Job, hyperparameters: Mapping[str, object], read: Read) -> Workload:
    """What ``read`` makes of ``hyperparameters`` and of the searched ones that change the need.

    For a range both ends are tried, for a list every value, one hyperparameter after the other. That is enough, because
    the planner's result grows or falls with each number, whatever the others are. A hyperparameter that already has a
    value, as in a training job that has run, keeps it.
    """
    given = dict(hyperparameters)
    notes = []
    for name in _relevant(job, hyperparameters):
        values = job.tuning.values(name) if job.tuning else []
        needs = [_need(read(job, {**given, name: value})) for value in values]
        given[name] = values[needs.index(max(needs))]
        notes.append(f"hyperparameters.{name} is searched among {', '.join(values)}; planned for {given[name]}")
    workload = read(job, given)
    return replace(workload, notes=(*workload.notes, *notes)) if notes else workload


def _relevant(job: Job, hyperparameters: Mapping[str, object]) -> list[str]:
    """The searched hyperparameters that the planner reads."""
    if job.tuning is None or job.memory is None:
        return []
    named = set(job.memory.knobs.values())
    return [name for name in job.tuning.ranges if name not in hyperparameters and (name in named or is_read(job, name))]


def _need(workload: Workload) -> float:
    predicted = predict(workload, _SOMEWHERE)
    if predicted is None:
        return 0.0
    return predicted.host.upper + (predicted.gpu.upper if predicted.gpu else 0.0)
