"""The page for a terminal: the same content in the same order, without the parts that only a pull request needs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sagefit.reviewing.jobs import Cost, JobReview
from sagefit.reviewing.judge import Review
from sagefit.reviewing.md import visible
from sagefit.reviewing.page import counts, notes
from sagefit.reviewing.report import shown
from sagefit.reviewing.rules import rules

_STYLES = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "dim"}
_SIGNS = {"create": "+", "update": "~", "delete": "-", "replace": "-/+", "forget": ".", "replace-forget": "./+"}
_MOST = 200


def page(review: Review) -> Iterator[RenderableType]:
    """The parts of the page."""
    title = visible(review.origin.stack or review.document.name)
    yield Text.assemble(("Plan: ", "bold"), (title, "bold"), ": ", (review.verdict, "bold"))
    yield Text(counts(review))
    for note in notes(review):
        yield Text(note, style="yellow")
    yield Text()
    if review.decisions:
        yield Text("Needs a decision", style="bold")
    for finding in review.findings:
        rule = rules()[finding.rule]
        told = visible(finding.message.text(review.redactor.show)).replace("\n", "⏎")
        line = Text.assemble((f"{finding.severity:<9}", _STYLES[finding.severity]), (visible(finding.address), "bold"))
        yield line.append(f"\n         {rule.title}: {told} ({finding.rule})")
    if not review.findings:
        yield Text("Nothing needs a decision." if review.is_judged else "The plan could not be judged as a whole.")
    for job in review.jobs:
        yield Text()
        yield from _job(job, review)
    changes = [c for c in review.plan.managed if c.kind != "no-op"]
    if changes:
        yield Text("\nChanges", style="bold")
    for change in sorted(changes, key=lambda each: not each.destroys)[:_MOST]:
        yield Text(f"  {_SIGNS.get(change.kind, '?'):<3} {visible(change.address)}")
    if len(changes) > _MOST:
        yield Text(f"  and {len(changes) - _MOST} more; --format json lists what matters of each")
    if review.policies:
        new, fixed, old = (len(part) for part in (review.policies.new, review.policies.fixed, review.policies.old))
        yield Text(f"\nPolicies: {new} new failures, {fixed} fixed, {old} old", style="bold")
        for failure in review.policies.new:
            yield Text(f"  {failure.severity:<9}{visible(failure.address)} {failure.check}")


def _job(job: JobReview, review: Review) -> Iterator[RenderableType]:
    yield Text(f"Job {visible(review.redactor.show(job.name))}", style="bold")
    if job.after is None:
        yield Text("  removed" if job.change.kind == "delete" else "  cannot be read from this plan")
        return
    table = Table("attempt", "instances", "spot", "limit", "fit", "share", box=None, pad_edge=False)
    for fit in job.fits:
        share = max((share for *_, share in fit.needs()), default=None)
        attempt = fit.attempt
        table.add_row(
            escape(visible(attempt.name)),
            escape(visible(attempt.hardware)),
            "spot" if attempt.spot else "on demand",
            attempt.limit,
            fit.verdict,
            "" if share is None else f"{share:.0%}",
        )
    yield table
    earlier = f"{_usd(job.cost_before)} → " if job.cost_before else ""
    yield Text(f"worst case of a run: {earlier}{_usd(job.cost)}")
    if job.cost and job.cost.month is not None:
        words = f"{job.cost.starts.a_month:,.0f} runs a month by its schedule: at worst {job.cost.month:,.2f} USD"
        yield Text(words)
    for name, text in job.warm_pool.items():
        yield Text(f"warm pool, {visible(name)}: {visible(review.redactor.show(text, 400))}")
    for word in job.words:
        before, after = (shown(side, review.redactor) for side in (word.before, word.after))
        told = visible(f"{'' if before is None else before} → {'(removed)' if after is None else after}")
        yield Text(f"  {visible(review.redactor.show(word.field))}: {told}")


def _usd(cost: Cost | None) -> str:
    if cost is None:
        return "not known"
    usd = "price not found" if cost.worst is None else f"{cost.worst:.2f} USD"
    return usd + (" (estimated)" if cost.estimated else "")
