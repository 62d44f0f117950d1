"""The whole review of one plan: everything that a page, a report or a gate needs to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Literal

from sagefit.errors import SagefitError
from sagefit.planning import JobPlan
from sagefit.reviewing import rules
from sagefit.reviewing.document import Document, read_document
from sagefit.reviewing.jobs import JobReview, foreign_hits, review_jobs
from sagefit.reviewing.links import Links
from sagefit.reviewing.message import Message, say
from sagefit.reviewing.origin import Origin
from sagefit.reviewing.plan import Change, Plan
from sagefit.reviewing.policies import PolicyDiff
from sagefit.reviewing.redact import Redactor
from sagefit.reviewing.rules import SEVERITIES, Hit, Severity, drift
from sagefit.reviewing.tune import Suppression, Tuning

Verdict = Literal["blocked", "review needed", "nothing dangerous found", "nothing to apply", "cannot be applied"]
_WORST_LOW: Severity = "low"
_UNJUDGED = ("plan-errored", "plan-unknown-action")


@dataclass(frozen=True)
class Finding:
    """A danger: the rule that found it, how bad it is, where, and what exactly."""

    rule: str
    severity: Severity
    address: str
    message: Message
    change: Change | None = None

    @property
    def rank(self) -> tuple[int, int, str]:
        """The worst first, then in the order of the rules."""
        return SEVERITIES.index(self.severity), rules.place(self.rule), self.address


@dataclass(frozen=True)
class Review:
    """A plan and what is to be said of it. ``suppressed`` findings are accepted by the repository, with the reason."""

    document: Document
    origin: Origin
    findings: list[Finding]
    suppressed: list[tuple[Finding, Suppression]]
    jobs: list[JobReview]
    tuning: Tuning
    policies: PolicyDiff | None = None
    drifted: tuple[int, int] = field(default=(0, 0))
    links: Links = field(default_factory=Links)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.document.plan

    @cached_property
    def redactor(self) -> Redactor:
        """What shows values of this plan without its secrets."""
        return Redactor(self.plan)

    @property
    def decisions(self) -> list[Finding]:
        """What somebody has to decide: all that is worse than low."""
        return [finding for finding in self.findings if finding.severity != _WORST_LOW]

    @property
    def is_judged(self) -> bool:
        """Whether all of the plan could be judged; a gate must not pass a plan with parts missing."""
        return not self.plan.errored and not any(each.rule in _UNJUDGED for each in self.findings)

    @property
    def verdict(self) -> Verdict:
        """In one phrase."""
        if self.plan.errored:
            return "cannot be applied"
        if self.tuning.fail_on and self.blocks(self.tuning.fail_on):
            return "blocked"
        if self.decisions or (self.policies and self.policies.new):
            return "review needed"
        counts = self.plan.counts
        changes = sum(n for kind, n in counts.items() if kind not in ("no-op", "read")) + self.plan.outputs_change
        return "nothing dangerous found" if changes else "nothing to apply"

    def blocks(self, fail_on: Severity) -> bool:
        """Whether a gate at ``fail_on`` refuses: for a finding that bad, a new policy failure, or an unjudged plan."""
        policy = self.policies is not None and any(each.severity in _from(fail_on) for each in self.policies.new)
        return not self.is_judged or policy or bool(self.blocking(fail_on))

    def blocking(self, fail_on: Severity) -> list[Finding]:
        """The findings for which a gate at ``fail_on`` refuses, those about an unjudged plan included."""
        return [each for each in self.findings if each.severity in _from(fail_on) or each.rule in _UNJUDGED]


def _from(fail_on: Severity) -> tuple[Severity, ...]:
    return SEVERITIES[: SEVERITIES.index(fail_on) + 1]


def review(
    document: Document | str | Path,
    *,
    origin: Origin | None = None,
    tuning: Tuning | None = None,
    policies: PolicyDiff | None = None,
    job_plan: JobPlan | None = None,
    links: Links | None = None,
) -> Review:
    """Judge a plan of Terraform: a document that was read, or the path of a file that ``terraform show -json`` made.

    ``tuning`` is what a team accepts and where a gate shuts, ``policies`` what checkov says of it, and ``job_plan`` the
    plan of its job, where the job file is not in ``jobs/``. ``links`` are the addresses of what the page names.
    Raises SagefitError for a file that is no plan, or that nests deeper than can be read.
    """
    document = document if isinstance(document, Document) else read_document(Path(document))
    settings, plan = tuning or Tuning(), document.plan
    try:
        jobs = review_jobs(plan, settings.allowed, job_plan)
        found = [
            _finding(settings, *hit)
            for hit in (*rules.hits(plan), *_of_jobs(jobs), *foreign_hits(plan, settings.allowed))
        ]
    except RecursionError:
        raise SagefitError(
            f"{document.name}: a value in it is nested deeper than can be read",
            hint="look at the plan by hand; no policy or definition of AWS is that deep",
        ) from None
    today = _day_of(plan)
    kept, suppressed = [], []
    for finding in {(f.rule, f.address, repr(f.message)): f for f in found}.values():
        match = next((s for s in settings.suppress if s.matches(finding.rule, finding.address)), None)
        if match and match.expires >= today:
            suppressed.append((finding, match))
            continue
        kept.append(finding)
        if match:
            message = say("{} was accepted until {}: {}", match.rule, str(match.expires), match.reason)
            kept.append(_finding(settings, finding.address, finding.change, Hit("suppression-expired", message)))
    kept.sort(key=lambda finding: finding.rank)
    drifted, links = _drift(plan), links or Links()
    return Review(document, origin or Origin(), kept, suppressed, jobs, settings, policies, drifted, links)


def _finding(tuning: Tuning, address: str, change: Change | None, hit: Hit) -> Finding:
    severity = tuning.severities.get(hit.rule) or hit.severity or rules.rules()[hit.rule].severity
    return Finding(hit.rule, severity, address, hit.message, change)


def _of_jobs(jobs: list[JobReview]) -> Iterator[tuple[str, Change, Hit]]:
    for job in jobs:
        for hit in job.hits:
            yield job.change.address, job.change, hit


def _day_of(plan: Plan) -> date:
    """The day on which the plan was made: the same plan gives the same page on every day."""
    try:
        return datetime.fromisoformat(plan.timestamp.replace("Z", "+00:00")).date()
    except ValueError:
        return datetime.now(timezone.utc).date()


def _drift(plan: Plan) -> tuple[int, int]:
    """How many objects differ from the state in something that matters, and how many in form only."""
    real = len(drift.found(plan))
    return real, len(plan.resource_drift) - real
