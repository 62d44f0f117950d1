"""What earlier runs of a job measured, and what would have held it for less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sagefit.catalog import instances, price
from sagefit.errors import SagefitError
from sagefit.memory import Measured, Prediction, predict
from sagefit.memory.learned import placement_of
from sagefit.memory.peaks import Record, load
from sagefit.planning import JobPlan, PlannedAttempt
from sagefit.planning.choose import Candidate, choose
from sagefit.planning.market import choices

ROOMY = 0.6
"""Who uses less than this share of all usable memory may do with less of it."""


@dataclass(frozen=True)
class MeasuredAttempt:
    """One attempt of an earlier run, and what the formulas alone say of it today; None where they say nothing."""

    record: Record
    predicted: Prediction | None

    def as_json(self) -> dict[str, Any]:
        """The object in ``measured`` of ``sagefit size --json``."""
        host, gpu = (self.predicted.host, self.predicted.gpu) if self.predicted else (None, None)
        return {
            "training_job": self.record.training_job,
            "outcome": self.record.outcome,
            "cloud": self.record.cloud,
            "instance_type": self.record.instance_type,
            "instance_count": self.record.instance_count,
            "gpu_gib": self.record.gpu_gib,
            "host_gib": self.record.host_gib,
            "predicted_gpu_gib": round(gpu.point, 4) if gpu else None,
            "predicted_host_gib": round(host.point, 4) if host else None,
        }


@dataclass(frozen=True)
class Saving:
    """A cheaper instance that holds what ``attempt`` was measured to use. Prices in USD an hour, of all instances."""

    attempt: str
    instance_type: str
    share: float
    fit: Candidate
    usd_before: float
    usd_after: float
    estimated: bool

    @property
    def usd(self) -> float:
        """USD that an hour costs less."""
        return self.usd_before - self.usd_after

    @property
    def text(self) -> str:
        """One line for people."""
        mark, least = "~" if self.estimated else "", f"{self.share:.0%} of the memory of {self.instance_type}"
        what = f"{self.usd_after:.2f} USD an hour instead of {mark}{self.usd_before:.2f}"
        slower = "" if self.fit.placement.gpus else f"; it has {self.fit.instance.vcpus} vCPUs"
        gpu = f" ({self.fit.instance.accelerator})" if self.fit.placement.gpus else ""
        return (
            f"{self.attempt} uses at most {least}: {self.fit.instance_type}{gpu} would hold it for {mark}{what},"
            f" {mark}{self.usd:.2f} less ({self.usd / self.usd_before:.0%}), if it takes no longer there{slower}"
        )

    def as_json(self) -> dict[str, Any]:
        """The object ``saving`` of ``sagefit size --json``."""
        return {
            "attempt": self.attempt,
            "share": round(self.share, 4),
            "instance_type": self.fit.instance_type,
            "instance_count": self.fit.instance_count,
            "usd_per_hour": round(self.usd_after, 4),
            "usd_per_hour_less": round(self.usd, 4),
            "percent_less": round(100 * self.usd / self.usd_before, 1),
            "prices_estimated": self.estimated,
        }


def measured_attempts(plan: JobPlan) -> list[MeasuredAttempt]:
    """All that are kept for the job, oldest first."""
    return [MeasuredAttempt(record, _predicted(plan, record)) for record in load(plan.job)]


def _predicted(plan: JobPlan, record: Record) -> Prediction | None:
    job = plan.job
    if job.memory is None or job.memory.model is None:
        return None
    try:
        workload = replace(plan.workload(record.hyperparameters), peaks=())
    except SagefitError:  # it ran with what today's job file contradicts
        return None
    return predict(workload, placement_of(record))


def cheaper(plan: JobPlan, attempts: Sequence[PlannedAttempt], region: str) -> Saving | None:
    """What the first attempt with measured and mostly unused memory could save; None where none could save any."""
    for attempt in attempts:
        fit = attempt.fit
        if fit and fit.prediction and fit.prediction.source == "measured" and fit.verdict == "FITS":
            host, gpu = fit.prediction.host.point, fit.prediction.gpu.point if fit.prediction.gpu else None
            saving = saving_of(plan, attempt.name, (fit.instance_type, fit.instance_count), (host, gpu), region)
            if saving:
                return saving
    return None


def saving_of(
    plan: JobPlan, attempt: str, ran_on: tuple[str, int], used: tuple[float | None, float | None], region: str
) -> Saving | None:
    """The cheapest type that would have held what an attempt used, where it is cheaper and much memory was unused.

    ``ran_on`` are type and number of instances, ``used`` peaks of host and GPU in GiB. What replaces them has as many
    GPUs. None where nothing is saved, or a peak or price is not known.
    """
    (ml_type, count), (host, gpu) = ran_on, used
    instance = instances().get(ml_type)
    if instance is None or host is None or (gpu is None) == bool(instance.gpu_count):
        return None
    share = max(
        host / instance.usable_host_gib, gpu / instance.usable_gpu_gib if gpu and instance.usable_gpu_gib else 0
    )
    if share >= ROOMY:
        return None
    job = plan.job
    resources = job.resources.model_copy(update={"instance_type": "auto", "instance_count": count})
    workload = replace(plan.workload(), model=Measured(host, gpu), peaks=())
    found = choices(job.model_copy(update={"resources": resources}), workload)
    other = choose(c for c in found if c.placement.gpus == instance.gpu_count * count)
    before, after = price(ml_type, region), price(other.instance_type, region) if other else None
    if other is None or before is None or after is None:
        return None
    usd = before.usd_per_hour * count, after.usd_per_hour * other.instance_count
    estimated = before.estimated or after.estimated
    return Saving(attempt, ml_type, share, other, *usd, estimated) if usd[1] < usd[0] else None
