"""Measured peaks of a job's runs, for the planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sagefit.catalog import instances
from sagefit.job import Job
from sagefit.memory.peaks import MOST, Record
from sagefit.platform import Platform
from sagefit.running import reports
from sagefit.running.execution import latest_runs
from sagefit.running.ledger import read_run
from sagefit.running.records import COMPLETED, AttemptRecord, RunRecord

MEMORY_CLASSES = ("gpu_memory", "host_memory")
LARGEST = 2 * 1024**3
"""Bytes of an archive that are read for a report when somebody asked for it."""


def measured(job: Job, platform: Platform, cloud: str, *, limit: int = MOST) -> list[Record]:
    """What the attempts of the newest ``limit`` runs of ``job`` measured.

    Only attempts whose peak can be trusted: those that completed, and as lower bounds those that died of memory. What
    was interrupted or stopped may not have come to its peak.
    """
    return [record for run in latest_runs(job.name, platform, limit=limit) for record in _of(read_run(run), cloud)]


def _of(run: RunRecord, cloud: str) -> Iterator[Record]:
    for attempt in run.attempts:
        if attempt.training_job and attempt.outcome in (COMPLETED, *MEMORY_CLASSES):
            record = record_of(attempt, cloud, reports.read(attempt.output, largest=LARGEST))
            if record:
                yield record


def record_of(attempt: AttemptRecord, cloud: str, found: Sequence[reports.Report]) -> Record | None:
    """What an attempt measured, by the reports of its hosts.

    None when nothing was measured, or when GPUs were missing: then host memory held the tensors of the GPUs.
    """
    instance = instances().get(attempt.instance_type)
    if instance is None or instance.trainium or reports.gpus_per_host(found) != instance.gpu_count:
        return None
    host, gpu = reports.host_peak_gib(found) or attempt.host_peak_gib, reports.gpu_peak_gib(found)
    if host is None and gpu is None:
        return None
    return Record(
        training_job=attempt.training_job,
        outcome=attempt.outcome,
        cloud=cloud,
        instance_type=attempt.instance_type,
        instance_count=attempt.instance_count,
        gpus_per_host=instance.gpu_count,
        gpu=instance.accelerator if instance.gpu_count else "",
        code=attempt.code,
        hyperparameters=dict(sorted(attempt.hyperparameters.items())),
        gpu_gib=round(gpu, 4) if gpu else None,
        host_gib=round(host, 4) if host else None,
    )
