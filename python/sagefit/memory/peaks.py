"""Keeps measured peaks of a job's runs beside the job file: ``jobs/NAME.peaks.json``.

The file is committed with the job, so a plan's memory does not depend on the machine that rendered it, or on what a
cloud still remembers. ``sagefit size JOB --runs`` writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sagefit.errors import SagefitError
from sagefit.job import Job
from sagefit.paths import display

SCHEMA = 1
MOST = 20
"""Attempts that are kept, the newest of them."""


@dataclass(frozen=True)
class Record:
    """One attempt of a run: what it was and what it used at its peak, of one GPU and of one host, in GiB.

    ``outcome`` is ``completed``, or the class of memory that it died of. ``code`` is the digest of its code and
    ``cloud`` where it ran: ``aws``, or ``local`` for the embedded cloud.
    """

    training_job: str
    outcome: str
    cloud: str
    instance_type: str
    instance_count: int
    gpus_per_host: int
    gpu: str
    code: str
    hyperparameters: dict[str, str]
    gpu_gib: float | None
    host_gib: float | None


def path_of(job: Job) -> Path:
    """The file of ``job``."""
    return job.path.with_suffix(".peaks.json")


def load(job: Job) -> tuple[Record, ...]:
    """The attempts that are kept for ``job``, oldest first; none without a file.

    Raises SagefitError for a file that cannot be read, as after a merge with conflicts: it is not overwritten.
    """
    path = path_of(job)
    try:
        return _load(path, path.stat().st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=64)
def _load(path: Path, _changed: int) -> tuple[Record, ...]:
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
        if kept["schema"] == SCHEMA:
            return tuple(Record(**record) for record in kept["peaks"])
        why = f"schema {kept['schema']}, this version reads {SCHEMA}"
    except (ValueError, TypeError, KeyError) as error:
        why = str(error)
    raise SagefitError(
        f"{display(path)}: not a file of measured peaks ({why})",
        hint="restore it or delete it; sagefit size JOB --runs writes it anew from the runs that AWS still has",
    )


def save(job: Job, records: Iterable[Record]) -> bool:
    """Add ``records`` to those that are kept; returns whether the file changed."""
    before = load(job)
    every = {record.training_job: record for record in (*before, *records)}
    after = tuple(sorted(every.values(), key=lambda record: record.training_job)[-MOST:])
    if after == before:
        return False
    text = json.dumps({"schema": SCHEMA, "peaks": [asdict(record) for record in after]}, indent=1)
    partial = path_of(job).with_suffix(f".{os.getpid()}")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path_of(job))
    _load.cache_clear()
    return True
