"""Tries each proposed change: the job file with it is read, checked and planned as a user's would be."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

from sagefit.errors import SagefitError
from sagefit.explaining.proposals import TOGETHER, Failed, Proposal, proposals
from sagefit.job import load_job
from sagefit.job.edits import edited
from sagefit.job.key import dotted
from sagefit.memory.peaks import path_of
from sagefit.paths import display
from sagefit.planning import JobPlan, PlannedAttempt, check_max_price
from sagefit.planning.choose import Candidate
from sagefit.platform import Platform
from sagefit.platform_rules import platform_problems

MOST = 4
"""Changes that are shown."""


@dataclass(frozen=True)
class Remedy:
    """A change of a job file that was tried.

    ``text`` is the whole file with it, None where the file stays and the measured peaks of the run are kept beside it.
    ``fits`` is what the planner says of the memory that ran out; None where it cannot say, or another thing ran out.
    ``effect`` says what it does to memory and price, ``refused`` why the job cannot run like this yet.
    """

    proposal: Proposal
    text: str | None
    diff: str
    fits: bool | None
    effect: str
    refused: str = ""

    def as_json(self) -> dict[str, Any]:
        """The object in ``changes`` of ``sagefit diagnose --json``."""
        return {
            "what": self.proposal.words,
            "fields": {dotted(edit.field): edit.value for edit in self.proposal.edits},
            "diff": self.diff,
            "fits": self.fits,
            "effect": self.effect,
            "refused": self.refused or None,
        }


def remedies(failed: Failed, text: str, platform: Platform, now: JobPlan) -> list[Remedy]:
    """The proposals that the planner takes, at most `MOST`. ``text`` is that of the job file, ``now`` its plan today.

    What still would not fit is left out. Of a kind the first that helps is enough, and no combination is needed where
    one change is.
    """
    found: list[Remedy] = []
    for proposal in proposals(failed):
        if proposal.kind in {remedy.proposal.kind for remedy in found if proposal.kind}:
            continue
        if proposal.kind == TOGETHER and any(remedy.fits for remedy in found):
            continue
        if remedy := _try(failed, proposal, text, platform, now):
            found.append(remedy)
    return found[:MOST]


def _try(failed: Failed, proposal: Proposal, text: str, platform: Platform, now: JobPlan) -> Remedy | None:
    job = failed.job
    try:
        changed = edited(text, proposal.edits)
        plan = JobPlan(load_job(job.path, text=changed, uploads=False), failed.plan.also)
        after = _in_its_place(failed, plan)
    except SagefitError:
        return None
    if after is None or next(platform_problems(plan, platform), None):
        return None
    before = failed.candidate
    if not proposal.edits and not _differs(plan, now):
        return None
    fits = _fits(failed, after.fit)
    if fits is False:
        return None
    effects = filter(None, [_memory(failed, before, after, fits), _price(plan, now, platform.region)])
    return Remedy(
        proposal,
        changed if proposal.edits else None,
        _diff(failed, text, changed),
        fits,
        "; ".join(effects),
        _refused(plan, platform.region),
    )


def _in_its_place(failed: Failed, plan: JobPlan) -> PlannedAttempt | None:
    """What runs in place of what failed: the attempt of its name, or the first of attempts that Sagefit makes."""
    if failed.step:
        return plan.steps[failed.index or 0]
    return plan.attempt(failed.record.name) if failed.attempt else plan.attempts[0]


def _differs(plan: JobPlan, now: JobPlan) -> bool:
    try:
        before = [replace(attempt, fit=None) for attempt in now.attempts]
    except SagefitError:
        return True
    return [replace(attempt, fit=None) for attempt in plan.attempts] != before


def _fits(failed: Failed, fit: Candidate | None) -> bool | None:
    """Whether the memory that ran out would be enough; None where nothing is predicted."""
    if failed.failure_class not in ("gpu_memory", "host_memory") or fit is None or fit.verdict == "UNKNOWN":
        return None
    return fit.verdict == "FITS"


def _memory(failed: Failed, before: Candidate | None, after: PlannedAttempt, fits: bool | None) -> str:
    """What the planner says of memory."""
    if failed.failure_class not in ("gpu_memory", "host_memory") or failed.step:
        return ""
    if fits is None or after.fit is None or after.fit.prediction is None:
        return "not predicted, as memory.model is not given"
    gpu = failed.failure_class == "gpu_memory"
    estimate = after.fit.prediction.gpu if gpu else after.fit.prediction.host
    usable = after.fit.usable_gpu_gib if gpu else after.fit.usable_host_gib
    if estimate is None or usable is None:
        return ""
    where = "per GPU" if gpu else "per host"
    many = f"{after.instance_count} x " if after.instance_count > 1 else ""
    on = f" on {many}{after.fit.instance_type}" if before is None or after.fit.instance != before.instance else ""
    was = before.prediction and (before.prediction.gpu if gpu else before.prediction.host) if before else None
    instead = f" instead of {was.upper:.2f}" if was and f"{was.upper:.2f}" != f"{estimate.upper:.2f}" else ""
    before_too = "; but so did what failed, by the same formulas" if before and before.verdict == "FITS" else ""
    return f"fits{on}: at most {estimate.upper:.2f} of {usable:.2f} GiB {where}{instead}{before_too}"


def _price(plan: JobPlan, now: JobPlan, region: str) -> str:
    usd = plan.worst_case_usd(region)
    try:
        was = now.worst_case_usd(region)
    except SagefitError:
        was = None
    if usd is None:
        return ""
    mark = "~" if plan.prices_estimated(region) else ""
    if was is not None and f"{was:.2f}" == f"{usd:.2f}":
        return f"a run costs at most {mark}{usd:.2f} USD, as before"
    return f"a run costs at most {mark}{usd:.2f} USD" + (f" instead of {was:.2f}" if was is not None else "")


def _refused(plan: JobPlan, region: str) -> str:
    try:
        check_max_price(plan, region)
    except SagefitError as error:
        return f"raise max_price first: {error.message.partition('max_price: ')[2]}"
    return ""


def _diff(failed: Failed, before: str, after: str) -> str:
    """The change as `git diff` shows it; without a change of the file, which file is written."""
    name = display(failed.job.path)
    if before == after:
        return f"+ {display(path_of(failed.job))}"
    return "\n".join(
        line.rstrip("\r\n")
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=1, lineterm="")
    )
