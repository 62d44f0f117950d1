"""The answer for one job: predicted need, the instances judged, the attempts, and what would help if nothing fits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sagefit.catalog import price
from sagefit.errors import DOES_NOT_FIT, DONE
from sagefit.job import Job
from sagefit.job.problem import Problem
from sagefit.memory import Workload
from sagefit.memory.bounds import Evidence, evidence
from sagefit.memory.lookalikes import remarks
from sagefit.planning import JobPlan, PlannedAttempt, is_estimated, worst_case_usd
from sagefit.planning.advice import Advice, nearest, nothing_helps
from sagefit.planning.candidate import Verdict
from sagefit.planning.choose import Candidate
from sagefit.planning.frontier import Way, ways
from sagefit.planning.remarks import plan_remarks
from sagefit.size.measured import MeasuredAttempt, Saving, cheaper, measured_attempts


@dataclass(frozen=True)
class Sizing:
    """A plan as `sagefit size` shows it. Prices are those of ``region``.

    ``shown`` is the candidate that the predicted need is of: the chosen one, else the one that misses by least. None
    where the job file does not say what is trained. ``attempts`` are none where nothing fits. ``measured`` are attempts
    of earlier runs beside what is predicted for them, and ``saving`` what would hold for less what they used.
    ``cheaper`` are changes with which the job would cost less, or fit at all.
    """

    plan: JobPlan
    region: str
    candidates: list[Candidate]
    chosen: Candidate | None
    shown: Candidate | None
    attempts: list[PlannedAttempt]
    measured: list[MeasuredAttempt]
    saving: Saving | None
    cheaper: list[Way]

    @property
    def job(self) -> Job:
        """The job that was planned."""
        return self.plan.job

    @property
    def workload(self) -> Workload:
        """What trains, with the job's own hyperparameters."""
        return self.plan.workload()

    @property
    def advice(self) -> list[Advice]:
        """What would make it fit, where nothing does."""
        return self.plan.advice

    @property
    def verdict(self) -> Verdict:
        """That of what was chosen, else how near the nearest comes; UNKNOWN where there is nothing to judge."""
        return self.shown.verdict if self.shown else "UNKNOWN"

    @property
    def exit_code(self) -> int:
        """0, or 3 when the need is known, nothing is sure to hold it, and the job does not accept that."""
        short = not self.chosen and self.workload.world_size is not None
        none_large = short and all(candidate.too_few_gpus for candidate in self.candidates)
        return DOES_NOT_FIT if (not self.chosen and self.verdict in ("RISKY", "OOM")) or none_large else DONE

    @property
    def nothing_helps(self) -> str:
        """The line for a job that no change makes fit; empty for all others, and for attempts that are written out."""
        if self.exit_code == DONE or self.advice or self.job.attempts != "auto":
            return ""
        return nothing_helps(self.job, self.workload, self.candidates)

    @property
    def worst_case_usd(self) -> float | None:
        """What a run costs at worst; None without attempts or without a price."""
        return worst_case_usd(self.attempts, self.region, steps=self.plan.steps) if self.attempts else None

    @property
    def prices_estimated(self) -> bool:
        """Whether a price behind the worst case is estimated."""
        return bool(self.attempts) and is_estimated(self.attempts, self.region, steps=self.plan.steps)

    @property
    def evidence(self) -> Evidence | None:
        """What is behind the bound that is shown; None where no formula predicts it, or runs of the job correct it."""
        shown = self.shown
        if shown is None or shown.prediction is None or shown.prediction.source != "formula":
            return None
        return evidence(self.workload, on_gpu=bool(shown.placement.gpus_per_host))

    @property
    def beside(self) -> float:
        """GiB of the bound on a GPU's memory that are no part of ``evidence.ratio``."""
        gpu = self.shown.prediction.gpu if self.shown and self.shown.prediction else None
        return gpu.beside if gpu else 0.0

    @property
    def remarks(self) -> list[Problem]:
        """What the user should look at again."""
        return [*remarks(self.job), *plan_remarks(self.plan)]

    @property
    def assumptions(self) -> list[str]:
        """What the prediction takes for granted."""
        noted = self.shown.prediction.assumptions if self.shown and self.shown.prediction else ()
        gpus, used = self.shown.placement.gpus if self.shown else 0, self.workload.world_size or 0
        idle = (f"world_size {used} of {gpus} GPUs: the others stay idle",) if 0 < used < gpus else ()
        return list(dict.fromkeys((*self.workload.notes, *noted, *idle)))


def size_job(plan: JobPlan, region: str) -> Sizing:
    """What a plan says of a job, in prices of ``region``.

    Attempts that Sagefit makes are shown before it is asked whether AWS takes them: who sizes a job may have no image
    for it yet. Raises SagefitError for a job that cannot be read as a workload.
    """
    if plan.job.written_attempts is not None:
        attempts = plan.attempts
    elif plan.chosen or plan.workload().model is None:
        attempts = plan.proposed  # which raises without a model
    else:
        attempts = []
    priced = [_priced(candidate, region) for candidate in plan.candidates]
    of_plan = zip(priced, plan.candidates, strict=True)
    own = next((p for p, c in of_plan if c is plan.chosen and c.verdict != "UNKNOWN"), None)
    shown = own or nearest(priced)
    saving = cheaper(plan, attempts, region)
    found = ways(plan.job, plan.workload(), plan.chosen) if plan.job.written_attempts is None else []
    less = [replace(way, fit=_priced(way.fit, region)) for way in found]
    return Sizing(plan, region, priced, own, shown, attempts, measured_attempts(plan), saving, less)


def _priced(candidate: Candidate, region: str) -> Candidate:
    known = price(candidate.instance_type, region)
    return candidate if candidate.price == known else candidate._replace(price=known)
