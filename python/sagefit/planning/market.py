"""Which instances a job may use, each judged for a workload of it.

Prices here are those of the packaged tables for one region, whatever a user has refreshed and wherever the job will
run: a committed render must be the same on every machine, and prices of types keep their order across regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from sagefit.catalog.instance_table import instances
from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.job import Job
from sagefit.memory import Workload
from sagefit.planning import choose
from sagefit.planning.candidate import Verdict
from sagefit.planning.choose import HEAD_ROOM, Candidate, candidates
from sagefit.planning.planned import PlannedAttempt

WORST_LAST: tuple[Verdict, ...] = ("FITS", "UNKNOWN", "RISKY", "OOM")
Types = Literal["auto"] | tuple[str, ...]


def choices(job: Job, workload: Workload) -> Sequence[Candidate]:
    """The candidates that ``resources.instance_type`` allows for the first attempt, the cheapest first."""
    return _judged(job, workload, _written(job), job.resources.instance_count)


def cheapest(job: Job, workload: Workload) -> Candidate | None:
    """The one of `choices` that is chosen; the dearer ones are not judged."""
    return _cheapest(_written(job), job.resources.instance_count, workload, _head_room(job), job.resources.spot)


def fallbacks(job: Job, workload: Workload) -> Sequence[Candidate]:
    """The candidates for later attempts: those of a written list, else any type; no GPU types if the first has none."""
    written, count = job.resources.instance_type, job.resources.instance_count
    if not isinstance(written, str):
        return _judged(job, workload, tuple(written), count)
    on_cpu = written != "auto" and not instances()[written].gpu_count
    return _judged(job, workload, "auto", count, gpu=False if on_cpu else None)


def one(job: Job, workload: Workload, ml_type: str, count: int) -> Candidate:
    """``workload`` on instances of one type."""
    return _judged(job, workload, (ml_type,), count)[0]


def worst(job: Job, workload: Workload, attempt: PlannedAttempt) -> Candidate:
    """``workload`` on the instances of ``attempt``; with several groups on the group that fits it worst.

    If some groups have GPUs, the groups without do not train and hold no model.
    """
    with_gpu = [each for each in attempt.instances if instances()[each.instance_type].gpu_count]
    judged = with_gpu or attempt.instances
    found = [one(job, workload, each.instance_type, each.instance_count) for each in judged]
    return max(found, key=lambda c: (WORST_LAST.index(c.verdict), max(c.gpu_share or 0.0, c.host_share or 0.0)))


def _judged(job: Job, workload: Workload, types: Types, count: int, *, gpu: bool | None = None) -> Sequence[Candidate]:
    return _candidates(types, count, workload, _head_room(job), job.resources.spot, gpu)


def _written(job: Job) -> Types:
    written = job.resources.instance_type
    if written == "auto":
        return "auto"
    return (written,) if isinstance(written, str) else tuple(written)


def accepts_risky(job: Job) -> bool:
    """Whether an instance that is RISKY may be chosen where none fits."""
    return bool(job.memory and job.memory.accept_risky)


def _head_room(job: Job) -> float:
    return job.memory.head_room if job.memory else HEAD_ROOM


@lru_cache(maxsize=256)  # one job asks for the same ways to run it again and again
def _cheapest(types: Types, count: int, workload: Workload, head_room: float, spot: bool) -> Candidate | None:
    return choose.cheapest(types, count, workload, REFERENCE_REGION, head_room=head_room, spot=spot, packaged=True)


@lru_cache(maxsize=32)  # one job asks for the same a few times
def _candidates(
    types: Types, count: int, workload: Workload, head_room: float, spot: bool, gpu: bool | None
) -> tuple[Candidate, ...]:
    region = REFERENCE_REGION
    return tuple(candidates(types, count, workload, region, head_room=head_room, spot=spot, packaged=True, gpu=gpu))
