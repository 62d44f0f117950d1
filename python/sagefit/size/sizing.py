"""The answer for one job: predicted need, the instances judged, the attempts, and what would help if nothing fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sagefit.attempts import PlannedAttempt, graph, is_estimated, market, plan_attempts, plan_steps, worst_case_usd
from sagefit.attempts.advice import Advice, advise, nearest, nothing_helps
from sagefit.attempts.auto import first_choice
from sagefit.catalog import price
from sagefit.catalog.candidate import Verdict
from sagefit.catalog.choose import Candidate
from sagefit.errors import DOES_NOT_FIT, DONE
from sagefit.job import Job
from sagefit.memory import Workload
from sagefit.memory.read import read
from sagefit.size.measured import MeasuredAttempt, Saving, cheaper, measured_attempts


@dataclass(frozen=True)
class Sizing:
    """What is known of a job before it runs. Prices are those of ``region``.

    ``shown`` is the candidate that the predicted need is of: the chosen one, else the one that misses by least. None
    where the job file does not say what is trained. ``measured`` are attempts of earlier runs beside what is predicted
    for them, and ``saving`` what would hold for less what they used.
    """

    job: Job
    region: str
    workload: Workload
    candidates: list[Candidate]
    chosen: Candidate | None
    shown: Candidate | None
    attempts: list[PlannedAttempt]
    advice: list[Advice]
    measured: list[MeasuredAttempt]
    saving: Saving | None

    @property
    def verdict(self) -> Verdict:
        """FITS where something was chosen, else how near the nearest comes; UNKNOWN where there is nothing to judge."""
        return self.shown.verdict if self.shown else "UNKNOWN"

    @property
    def exit_code(self) -> int:
        """0, or 3 when the need is known and nothing that the job may use is sure to hold it."""
        short = not self.chosen and self.workload.world_size is not None
        none_large = short and all(candidate.too_few_gpus for candidate in self.candidates)
        return DOES_NOT_FIT if self.verdict in ("RISKY", "OOM") or none_large else DONE

    @property
    def nothing_helps(self) -> str:
        """The line for a job that no change makes fit; empty for all others, and for attempts that are written out."""
        if self.exit_code == DONE or self.advice or self.job.attempts != "auto":
            return ""
        return nothing_helps(self.job, self.workload, self.candidates)

    @property
    def worst_case_usd(self) -> float | None:
        """What a run costs at worst; None without attempts or without a price."""
        return worst_case_usd(self.attempts, self.region, steps=plan_steps(self.job)) if self.attempts else None

    @property
    def prices_estimated(self) -> bool:
        """Whether a price behind the worst case is estimated."""
        return bool(self.attempts) and is_estimated(self.attempts, self.region, steps=plan_steps(self.job))

    @property
    def assumptions(self) -> list[str]:
        """What the prediction takes for granted."""
        noted = self.shown.prediction.assumptions if self.shown and self.shown.prediction else ()
        gpus, used = self.shown.placement.gpus if self.shown else 0, self.workload.world_size or 0
        idle = (f"world_size {used} of {gpus} GPUs: the others stay idle",) if 0 < used < gpus else ()
        return list(dict.fromkeys((*self.workload.notes, *noted, *idle)))


def size_job(job: Job, region: str) -> Sizing:
    """Predict ``job`` and judge what it may run on. Raises SagefitError for a job that cannot be read as a workload."""
    workload = read(job)
    if job.written_attempts is not None:
        return _written(job, region, workload)
    found = market.choices(job, workload)
    chosen = first_choice(found)
    attempts = graph(job, workload, found) if chosen or workload.model is None else []  # which raises without a model
    advice = [] if chosen else advise(job, workload, found)
    return _sizing(job, region, workload, found, chosen, attempts, advice)


def _written(job: Job, region: str, workload: Workload) -> Sizing:
    """Written attempts are the user's choice: each is judged as it stands, and the first that fits is the chosen."""
    attempts = plan_attempts(job)
    found = [attempt.fit for attempt in attempts if attempt.fit]
    chosen = next((fit for fit in found if fit.verdict == "FITS"), None)
    return _sizing(job, region, workload, found, chosen, attempts, [])


def _sizing(
    job: Job,
    region: str,
    workload: Workload,
    found: Sequence[Candidate],
    chosen: Candidate | None,
    attempts: list[PlannedAttempt],
    advice: list[Advice],
) -> Sizing:
    priced = [_priced(candidate, region) for candidate in found]
    own = next((p for p, c in zip(priced, found, strict=True) if c is chosen and c.verdict == "FITS"), None)
    shown = own or nearest(priced)
    saving = cheaper(job, attempts, region)
    return Sizing(job, region, workload, priced, own, shown, attempts, advice, measured_attempts(job), saving)


def _priced(candidate: Candidate, region: str) -> Candidate:
    known = price(candidate.instance_type, region)
    return candidate if candidate.price is known else replace(candidate, price=known)
