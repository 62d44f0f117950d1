"""What is decided about one job before Terraform runs: made once, and handed on to all that need a part of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.job import Attempt, Job
from sagefit.job.values import Hyperparameter
from sagefit.memory import Workload
from sagefit.memory.peaks import Record
from sagefit.memory.read import read
from sagefit.planning import market
from sagefit.planning.advice import Advice, advise
from sagefit.planning.auto import first_choice, graph
from sagefit.planning.choose import Candidate
from sagefit.planning.cost import is_estimated, repeats_note, worst_case_usd
from sagefit.planning.limits import check_services
from sagefit.planning.planned import PlannedAttempt, fill, texts
from sagefit.planning.steps import plan_steps


@dataclass(frozen=True, eq=False)
class JobPlan:
    """One job with everything that its job file determines: the same on every machine and for every platform.

    Each part is computed once, at its first use. `plan` computes the attempts at once and so refuses a job that does
    not fit anywhere. To see why nothing fits, create a `JobPlan` directly. ``also`` are measured attempts to plan with
    as if they were kept beside the job file.
    """

    job: Job
    also: tuple[Record, ...] = ()
    _workloads: dict[str, Workload] = field(default_factory=dict, repr=False)

    def workload(self, hyperparameters: Mapping[str, Hyperparameter] | None = None) -> Workload:
        """What trains, as the planner sees it, with the job's own hyperparameters or with all of an attempt's.

        Raises SagefitError (exit code 2) for a memory block that contradicts itself or the hyperparameters.
        """
        given = self.job.hyperparameters if hyperparameters is None else hyperparameters
        key = json.dumps(texts(given))
        if key not in self._workloads:
            self._workloads[key] = read(self.job, given, self.also)
        return self._workloads[key]

    @cached_property
    def candidates(self) -> Sequence[Candidate]:
        """The candidates of the job with their verdicts: for ``attempts: auto`` all types to choose from, the cheapest
        first; for written attempts the instances of each, when there is a prediction for it.
        """
        if self.job.written_attempts is None:
            return market.choices(self.job, self.workload())
        return [attempt.fit for attempt in self.attempts if attempt.fit]

    @cached_property
    def chosen(self) -> Candidate | None:
        """The candidate of the first attempt; of written attempts the first that fits. None when none fits.

        With ``memory.accept_risky`` it may be one that is RISKY, if none fits.
        """
        if self.job.written_attempts is None:
            return first_choice(self.job, self.candidates)
        wanted = ("FITS", "RISKY") if market.accepts_risky(self.job) else ("FITS",)
        return next((fit for verdict in wanted for fit in self.candidates if fit.verdict == verdict), None)

    @cached_property
    def proposed(self) -> list[PlannedAttempt]:
        """The attempts before the check whether AWS accepts them: those that the job file lists, or for ``auto`` those
        that follow from its memory need.

        Raises SagefitError (exit code 3) when ``auto`` finds no instance that fits.
        """
        written = self.job.written_attempts
        if written is None:
            return graph(self.job, self.workload(), self.candidates)
        return [fill(self.job, attempt, self._fit(attempt)) for attempt in written]

    @cached_property
    def attempts(self) -> list[PlannedAttempt]:
        """The attempts of a run, in order.

        Raises SagefitError as `proposed` does, and with exit code 2 when AWS would not accept them: all together exceed
        a limit of a service, or no image is known for the chosen type.
        """
        check_services(self.job, self.proposed, self.steps)
        return self.proposed

    def _fit(self, attempt: Attempt) -> Candidate | None:
        """What is predicted for a written attempt; None where neither job file nor earlier runs say what it needs."""
        workload = self.workload({**self.job.hyperparameters, **attempt.hyperparameters})
        return None if workload.model is None else market.worst(self.job, workload, fill(self.job, attempt))

    @cached_property
    def steps(self) -> list[PlannedAttempt]:
        """The processing steps in the form of attempts, in order: a run goes through all of them."""
        return plan_steps(self.job)

    @cached_property
    def advice(self) -> list[Advice]:
        """What would make it fit, for a job with ``attempts: auto`` that fits nowhere; empty for all others."""
        if self.job.written_attempts is not None or (self.chosen and self.chosen.verdict != "RISKY"):
            return []
        return advise(self.job, self.workload(), self.candidates)

    @cached_property
    def text(self) -> str:
        """The tfvars text that Terraform reads: the same job gives the same bytes on every machine."""
        from sagefit.planning.tfvars import render  # sizing alone needs no templates

        return render(self.job, self.attempts, self._worst_case())

    def _worst_case(self) -> str | None:
        """The worst-case cost when attempts have predictions; from packaged prices, so the same on every machine."""
        usd = self.worst_case_usd(REFERENCE_REGION, packaged=True)
        if usd is None or not any(attempt.fit for attempt in self.attempts):
            return None
        estimated = ", by estimated prices" if self.prices_estimated(REFERENCE_REGION, packaged=True) else ""
        return f"A run costs at most {usd:.2f} USD in {REFERENCE_REGION}{estimated}; {repeats_note(usd)}."

    def attempt(self, name: str) -> PlannedAttempt | None:
        """The attempt of that name, if the job has one."""
        return next((attempt for attempt in self.attempts if attempt.name == name), None)

    def worst_case_usd(self, region: str, *, packaged: bool = False) -> float | None:
        """What one run costs at most, in USD, in prices of ``region``; None when a price is not known.

        Every attempt of the dearest path runs to its time limit. Repeats after internal errors of AWS come on top.
        ``packaged`` leaves refreshed prices aside, for what has to come out the same on every machine.
        """
        return worst_case_usd(self.attempts, region, steps=self.steps, packaged=packaged)

    def prices_estimated(self, region: str, *, packaged: bool = False) -> bool:
        """Whether a price behind `worst_case_usd` was published by nobody."""
        return is_estimated(self.attempts, region, steps=self.steps, packaged=packaged)


def plan(job: Job) -> JobPlan:
    """The plan of a job that can run. Nothing is asked of AWS, nothing is written.

    Raises SagefitError, with exit code 3 where nothing fits (its hint says what would help), and 2 where the job file
    contradicts itself or asks for more than the services take.
    """
    made = JobPlan(job)
    _ = made.attempts  # raises
    return made
