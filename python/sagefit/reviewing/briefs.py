"""What an overview of several plans says of one: verdict, counts, dangers, and of each job price and fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from sagefit.reviewing.jobs import JobReview
from sagefit.reviewing.judge import Review
from sagefit.reviewing.page import counts, decisions
from sagefit.reviewing.redact import Redactor
from sagefit.reviewing.rules import SEVERITIES
from sagefit.reviewing.runs import Runs

_FIRST = 5  # decisions that are told; the page has all of them


@dataclass(frozen=True)
class JobBrief:
    """A job of a plan. Prices are USD, at most, of one run and of a month of them by its schedule.

    A price is None where it is not known, and ``fit`` is empty for a job that is removed or cannot be read. ``share``
    is the largest share of any memory of the first attempt.
    """

    name: str
    fit: str = ""
    share: float | None = None
    run: float | None = None
    run_before: float | None = None
    month: float | None = None
    month_before: float | None = None
    is_new: bool = False
    estimated: bool = False


@dataclass(frozen=True)
class Brief:
    """One plan. ``dangers`` counts findings by severity, the worst first; ``decisions`` are the first, in Markdown.

    ``running`` counts runs in progress, of the job or of all that share the platform, and ``sharing`` those jobs.
    """

    verdict: str = ""
    counts: str = ""
    dangers: dict[str, int] = field(default_factory=dict)
    decisions: list[str] = field(default_factory=list)
    jobs: list[JobBrief] = field(default_factory=list)
    running: int = 0
    sharing: int = 0


def brief(review: Review, runs: Runs | None = None) -> Brief:
    """Of a review, without any value that is secret."""
    found = Counter(finding.severity for finding in review.findings)
    dangers: dict[str, int] = {severity: found[severity] for severity in SEVERITIES if found[severity]}
    jobs = [_job(job, review.redactor) for job in review.jobs]
    running, sharing = (len(runs.in_progress), len(runs.jobs)) if runs else (0, 0)
    return Brief(review.verdict, counts(review), dangers, list(_decisions(review)), jobs, running, sharing)


def _decisions(review: Review) -> Iterator[str]:
    """The worst, and how many more there are."""
    lines = list(decisions(review))
    yield from lines[:_FIRST]
    if len(lines) > _FIRST:
        yield f"- and {len(lines) - _FIRST} more, on the page"


def _job(job: JobReview, redactor: Redactor) -> JobBrief:
    before, after, first = job.cost_before, job.cost, job.fits[0] if job.fits else None
    return JobBrief(
        name=redactor.show(job.name),
        fit=first.verdict if first else "",
        share=max((share for *_, share in first.needs()), default=None) if first else None,
        run=after.worst if after else None,
        run_before=before.worst if before else None,
        month=after.month if after else None,
        month_before=before.month if before else None,
        is_new=job.change.kind == "create",
        estimated=any(cost.estimated for cost in (before, after) if cost),
    )
