"""The part of the page about a job: fit, attempts, price, and what changes in the words of its job file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.job.values import duration
from sagefit.machine.definition import Definition
from sagefit.planning import PlannedAttempt, usd_per_hour
from sagefit.reviewing.jobs import Cost, JobReview
from sagefit.reviewing.jobs.fit import Fit
from sagefit.reviewing.md import block, cell, code, visible
from sagefit.reviewing.redact import Redactor
from sagefit.reviewing.report import shown

NONE = "-"
MOST_WORDS = 60
MOST_ATTEMPTS = 20


def job_lines(job: JobReview, redactor: Redactor) -> Iterator[str]:
    """Paragraphs and tables about one job."""
    action = {"create": "new", "delete": "removed", "no-op": "only its schedule changes"}.get(
        job.change.kind, job.change.kind
    )
    yield f"### Job {code(redactor.show(job.name))}: {action}"
    if job.change.kind == "delete":
        yield "Its state machine goes. Models and checkpoints of its runs stay."
        return
    if job.after is None:
        yield "The job cannot be read from this plan, so neither fit nor price can be told."
        return
    yield _facts(job, redactor)
    if job.after.steps:
        yield _steps(job, job.after, redactor)
    yield _attempts(job)
    if job.warm_pool:
        lines = (f"- {cell(name)}: {cell(redactor.show(text, 400))}" for name, text in job.warm_pool.items())
        yield "\n".join(("Warm pool:", "", *lines))
    if job.words:
        yield block(_word_lines(job, redactor))
    if job.machine_changes:
        yield f"{job.machine_changes} states that are the same for all jobs change, as with a new version of Sagefit."


def _facts(job: JobReview, redactor: Redactor) -> str:
    rows = ["| | before | after |", "|---|---|---|"]
    rows.append(f"| fits in memory | {_verdict(job.fits_before)} | {_verdict(job.fits)} |")
    for what, attribute in (("worst case of a run", "worst"), ("expected, first attempt", "expected")):
        sides = (_usd(job.cost_before, attribute), _usd(job.cost, attribute))
        rows.append(f"| {what} | {sides[0]} | {sides[1]} |")
    if any(cost and cost.starts.written for cost in (job.cost_before, job.cost)):
        rows.append(f"| runs a month, by its schedule | {_runs(job.cost_before)} | {_runs(job.cost)} |")
        for what, attribute in (("worst case of a month", "month"), ("expected of a month", "expected_month")):
            rows.append(f"| {what} | {_usd(job.cost_before, attribute)} | {_usd(job.cost, attribute)} |")
    rows.append(f"| time limits of all attempts | {_time(job.cost_before)} | {_time(job.cost)} |")
    for word in ("code.digest", "launcher"):
        old, new = (d.words.get(word) if d else None for d in (job.before, job.after))
        if old or new:
            rows.append(f"| {word.removesuffix('.digest')} digest | {_cell(old, redactor)} | {_cell(new, redactor)} |")
    for word in sorted({w for d in (job.before, job.after) if d for w in d.words if _is_told(w)}):
        old, new = (d.words.get(word) if d else None for d in (job.before, job.after))
        rows.append(f"| {cell(redactor.show(word))} | {_cell(old, redactor)} | {_cell(new, redactor)} |")
    where = (
        f"Prices of {job.region}." if job.region else "The region is not in the plan; prices are those of us-east-1."
    )
    said = [where, "Before is judged by today's job file."] if job.fits_before else [where]
    return "\n".join(rows) + "\n\n" + " ".join(said)


def _is_told(word: str) -> bool:
    """Whether a new job tells of it, too: where its data is, and what it searches for."""
    return word.startswith("tuning.") or (word.startswith(("inputs.", "processing.")) and word.endswith(".uri"))


def _cell(value: Any, redactor: Redactor) -> str:
    return NONE if value is None else cell(redactor.show(value, 90))


def _verdict(fits: list[Fit]) -> str:
    if not fits:
        return NONE
    first = fits[0]
    needs = ", ".join(
        f"{what} {point:.1f} GiB, at most {upper:.1f} of {usable:.1f} ({share:.0%})"
        for what, point, upper, usable, share in first.needs()
    )
    return f"{first.verdict}: {needs}" if needs else f"{first.verdict}: {cell(first.why)}"


def _usd(cost: Cost | None, attribute: str) -> str:
    if cost is None:
        return NONE
    usd = getattr(cost, attribute)
    if usd is None and attribute.endswith("month"):
        return NONE
    return "price not found" if usd is None else f"{usd:.2f} USD{' (estimated prices)' if cost.estimated else ''}"


def _runs(cost: Cost | None) -> str:
    return f"{cost.starts.a_month:,.0f}" if cost and cost.starts.written else NONE


def _time(cost: Cost | None) -> str:
    return duration(cost.seconds) if cost else NONE


def _steps(job: JobReview, after: Definition, redactor: Redactor) -> str:
    rows = ["| before the first attempt | image | instances | USD an hour | limit |", "|---|---|---|--:|--:|"]
    for step in after.steps:
        usd = usd_per_hour(step, job.region or REFERENCE_REGION, packaged=True)
        image = after.words.get(f"{step.name.replace(' ', '.')}.image")
        rows.append(
            f"| {cell(step.name)} | {_cell(image, redactor)} | {cell(step.hardware)} "
            f"| {'not found' if usd is None else f'{usd:.2f}'} | {duration(step.max_runtime_seconds)} |"
        )
    return "\n".join(rows)


def _attempts(job: JobReview) -> str:
    rows = [
        "| attempt | instances | spot | USD an hour | limit | fit | share |",
        "|---|---|---|--:|--:|---|--:|",
    ]
    shown = job.fits[:MOST_ATTEMPTS]
    for fit in shown:
        attempt = fit.attempt
        usd = usd_per_hour(attempt, job.region or REFERENCE_REGION, packaged=True)
        share = max((share for *_, share in fit.needs()), default=None)
        rows.append(
            f"| {cell(attempt.name)} | {cell(attempt.hardware)} "
            f"| {'spot' if attempt.spot else 'on demand'} | {'not found' if usd is None else f'{usd:.2f}'} "
            f"| {attempt.limit} | {fit.verdict} | {NONE if share is None else f'{share:.0%}'} |"
        )
    if len(job.fits) > MOST_ATTEMPTS:
        rows.append(f"| {len(job.fits) - MOST_ATTEMPTS} more | | | | | | |")
    picture = _picture([fit.attempt for fit in shown])
    return "\n".join(rows) + (f"\n\nAfter a failure:\n\n{picture}" if picture else "\n\nAfter a failure it ends.")


def _picture(attempts: list[PlannedAttempt]) -> str:
    """Which attempt follows which, and after what: a picture on GitHub and GitLab, and readable text elsewhere."""
    places = {attempt.name: f"a{number}" for number, attempt in enumerate(attempts)}
    nodes, edges = [], []
    for attempt in attempts:
        nodes.append(f'  {places[attempt.name]}["{_label(attempt.name)}<br/>{_label(attempt.hardware)}"]')
        following: dict[str, list[str]] = {}
        for kind, target in attempt.next.items():
            following.setdefault(target, []).append(kind)
        for target, kinds in following.items():
            if target in places:
                edges.append(f'  {places[attempt.name]} -- "{"<br/>".join(map(_label, kinds))}" --> {places[target]}')
    return block(["flowchart LR", *nodes, *edges], "mermaid") if edges else ""


def _label(text: str) -> str:
    """Text in a picture, where quotes, brackets and entities would be read as more than text."""
    return re.sub(r"[^\w .,:+\u00d7-]", "_", visible(text))[:80]


def _word_lines(job: JobReview, redactor: Redactor) -> Iterator[str]:
    for word in job.words[:MOST_WORDS]:
        before, after = (shown(side, redactor) for side in (word.before, word.after))
        field = redactor.show(word.field)
        if before is not None:
            yield f"- {field}: {_line(before)}"
        if after is not None:
            yield f"+ {field}: {_line(after)}"
    if len(job.words) > MOST_WORDS:
        yield f"  … and {len(job.words) - MOST_WORDS} more fields"


def _line(text: str) -> str:
    return text.replace("\n", "⏎")
