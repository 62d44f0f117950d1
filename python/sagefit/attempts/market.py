"""Which instances a job may use, each judged for a workload of it.

Prices here are those of the packaged tables for one region, whatever a user has refreshed and wherever the job will
run: a committed render must be the same on every machine, and prices of types keep their order across regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from sagefit.catalog.choose import HEAD_ROOM, Candidate, candidates
from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.job import Job
from sagefit.memory import Workload

Types = Literal["auto"] | tuple[str, ...]


def choices(job: Job, workload: Workload) -> Sequence[Candidate]:
    """What ``resources.instance_type`` leaves to choose from for the first attempt, the cheapest first."""
    written = job.resources.instance_type
    if written == "auto":
        return _judged(job, workload, "auto", job.resources.instance_count)
    types = (written,) if isinstance(written, str) else tuple(written)
    return _judged(job, workload, types, job.resources.instance_count)


def fallbacks(job: Job, workload: Workload) -> Sequence[Candidate]:
    """What later attempts may use: those of a written list only, else any type."""
    written = job.resources.instance_type
    types: Types = "auto" if isinstance(written, str) else tuple(written)
    return _judged(job, workload, types, job.resources.instance_count)


def one(job: Job, workload: Workload, ml_type: str, count: int) -> Candidate:
    """``workload`` on instances of one type."""
    return _judged(job, workload, (ml_type,), count)[0]


def _judged(job: Job, workload: Workload, types: Types, count: int) -> Sequence[Candidate]:
    head_room = job.memory.head_room if job.memory else HEAD_ROOM
    return _candidates(types, count, workload, head_room, job.resources.spot)


@lru_cache(maxsize=32)  # one job asks for the same a few times
def _candidates(types: Types, count: int, workload: Workload, head_room: float, spot: bool) -> tuple[Candidate, ...]:
    found = candidates(types, count, workload, REFERENCE_REGION, head_room=head_room, spot=spot, packaged=True)
    return tuple(found)
