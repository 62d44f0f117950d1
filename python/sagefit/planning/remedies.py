"""Remedies that cost nothing but time: what an attempt may set so that the same training needs less memory.

Each sets hyperparameters that the job's script knows (`memory.knobs`). A remedy counts only if the job, read with them,
gives the promised workload: a value in the memory block, for example, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sagefit.job import Job
from sagefit.job.memory_model import Knob
from sagefit.job.values import Hyperparameter
from sagefit.memory import Workload
from sagefit.memory.knobs import follows, name_of
from sagefit.memory.read import read

FACTOR = 2
Values = Mapping[str, Hyperparameter]
_FIELDS: Mapping[str, str] = {"in_memory": "dataset_in_memory"}  # knobs that a workload names otherwise


@dataclass(frozen=True)
class Remedy:
    """The hyperparameters that an attempt sets, including earlier remedies, and the workload that results."""

    name: str
    reason: str
    hyperparameters: Values
    workload: Workload


MakeRemedy = Callable[[Job, Values, Workload], Remedy | None]


def accumulate(job: Job, given: Values, now: Workload) -> Remedy | None:
    """A smaller micro-batch, accumulated over more steps: the effective batch stays exactly the same."""
    if now.micro_batch % FACTOR:
        return None
    micro, accumulation = now.micro_batch // FACTOR, now.accumulation * FACTOR
    reason = (
        f"Micro-batch {micro} instead of {now.micro_batch}, accumulation {accumulation} instead of {now.accumulation}: "
        "the same effective batch"
    )
    return _remedy(job, given, now, "accumulate-2", reason, {"micro_batch": micro, "accumulation": accumulation})


def checkpoint(job: Job, given: Values, now: Workload) -> Remedy | None:
    """Activation checkpointing: activations are computed a second time instead of kept."""
    if now.gradient_checkpointing:
        return None
    reason = "Activations are computed a second time instead of kept"
    return _remedy(job, given, now, "checkpointing", reason, {"gradient_checkpointing": True})


def stream(job: Job, given: Values, now: Workload) -> Remedy | None:
    """The dataset is read as it is needed instead of held in memory."""
    if not now.dataset_in_memory:
        return None
    return _remedy(job, given, now, "streaming", "The dataset is streamed instead of held", {"in_memory": False})


def fewer_workers(job: Job, given: Values, now: Workload) -> Remedy | None:
    """Half the loader's worker processes, which hold batches in the host's memory and in /dev/shm."""
    if not now.workers:
        return None
    workers = now.workers // FACTOR
    return _remedy(
        job, given, now, "fewer-workers", f"{workers} loader workers instead of {now.workers}", {"workers": workers}
    )


def _remedy(
    job: Job, given: Values, now: Workload, name: str, reason: str, changes: Mapping[Knob, Hyperparameter]
) -> Remedy | None:
    knobs = {field: name_of(job, field) for field in changes if not follows(job, field)}
    values = {**given, **{knob: changes[field] for field, knob in knobs.items() if knob is not None}}
    searched = job.tuning.ranges if job.tuning else {}
    if any(knob is None or knob in searched for knob in knobs.values()):
        return None
    workload = read(job, {**job.hyperparameters, **values})
    if now.peaks:  # which none of these changes takes away
        workload = replace(workload, peaks=now.peaks)
    took = all(getattr(workload, _FIELDS.get(field, field)) == value for field, value in changes.items())
    return Remedy(name, reason, values, workload) if took else None
