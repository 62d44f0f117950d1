"""The page in Markdown: first what needs a decision, which is never cut; then folds, the least dangerous cut first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from sagefit.reviewing.jobpage import job_lines
from sagefit.reviewing.judge import Finding, Review
from sagefit.reviewing.links import Console, link
from sagefit.reviewing.md import block, code, marker, summary
from sagefit.reviewing.references import References
from sagefit.reviewing.rules import SEVERITIES, rules
from sagefit.reviewing.runs import Runs
from sagefit.reviewing.sections import Section, said, sections
from sagefit.reviewing.written import MOST_LINES, Written

BUDGET = 60_000
"""Bytes of a page. GitHub takes 65,536 characters and the message needs room for what a workflow adds."""

DECISIONS = "### Needs a decision"
"""The heading of what must be decided."""

DIGESTS = "Digests of what was planned"
"""The title of the fold with what binds the page to a plan."""

_FOR_DECISIONS = 0.75
_EDGE = 400  # what the frame of a fold takes

# What the table of verdicts asks, and the rules that answer it.
_QUESTIONS = (
    ("data destroyed", ("stateful-", "state-machine-")),
    ("IAM and trust", ("iam-", "trust-")),
    ("public access and network", ("public-", "network-", "metadata-")),
    ("encryption and secrets", ("encryption-", "tls-", "secret-", "upload-", "job-traffic-")),
    ("versions, backups, retention", ("versioning-", "deletion-", "backup-", "retention-", "immutability-")),
    ("audit and alarms", ("audit-", "alarm-", "event-")),
    ("jobs", ("job-",)),
    ("the plan itself", ("plan-", "check-", "runs-", "drift-", "protection-", "suppression-", "reviewer-")),
)


@dataclass(frozen=True)
class _Fold:
    title: str
    count: int
    entries: list[str]
    dropped: int


def markdown(
    review: Review,
    budget: int = BUDGET,
    written: Written | None = None,
    runs: Runs | None = None,
    console: Console | None = None,
) -> str:
    """The page of ``review`` in at most ``budget`` bytes. The same plan gives the same bytes.

    ``written`` is the file that the stack is written in, where the change edits it; ``runs`` is what is known of its
    runs, and ``console`` is where they are shown.
    """
    decided = _decisions(review, int(budget * _FOR_DECISIONS))
    jobs = ["\n\n".join(job_lines(job, review.redactor)) for job in review.jobs]
    past = ["\n\n".join(_ran(runs, console))] if runs or console else []
    first = list(_of_author(review, written)) if written else []
    fixed = _render(review, decided, past, first)
    room = budget - _size(fixed)
    kept_jobs, room = _fitting(jobs, room)
    if len(kept_jobs) < len(jobs):
        kept_jobs.append(f"{len(jobs) - len(kept_jobs)} more jobs are left out here for want of room.")
    folds = first
    for section in sections(review):
        fold = _fold(section, room)
        room -= _EDGE // 2 + sum(_size(entry) + 1 for entry in fold.entries)
        folds.append(fold)
    return _render(review, decided, kept_jobs + past, folds)


def _ran(runs: Runs | None, console: Console | None) -> Iterator[str]:
    if runs:
        yield from runs.lines(console)
    if console:
        yield f"{console.of_machine('The state machine')} in the console."


def _of_author(review: Review, written: Written) -> Iterator[_Fold]:
    lines = written.lines
    if lines:
        edited = sum(line.startswith(("+", "-")) for line in lines)
        rest = [f"… {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
        title = f"What the author wrote in {summary(written.path)}"
        where = [f"{review.links.file(written.path, written.line)}\n"] if review.links.files else []
        yield _Fold(title, edited, [*where, block([*lines[:MOST_LINES], *rest])], 0)


def _fitting(parts: list[str], room: int) -> tuple[list[str], int]:
    kept = []
    for part in parts:
        if _size(part) + _EDGE > room:
            break
        kept.append(part)
        room -= _size(part) + 2
    return kept, room


def _fold(section: Section, room: int) -> _Fold:
    kept, left = [], room - _EDGE * 4
    for entry in section.entries:
        left -= _size(entry) + 1
        if left < 0:
            break
        kept.append(entry)
    return _Fold(section.title, section.count, kept, section.count - len(kept))


def _render(review: Review, decided: str, jobs: list[str], folds: list[_Fold]) -> str:
    plan, origin = review.plan, review.origin
    text = _template().render(
        stack=marker(origin.stack or review.document.name),
        sha=marker(origin.commit),
        digest=origin.plan_digest or review.document.digest,
        name=summary(origin.stack or review.document.name)[:200],
        verdict=review.verdict,
        counts=counts(review),
        notes=list(notes(review)),
        table=_table(review),
        decisions=f"{DECISIONS}\n\n{decided}",
        jobs=jobs,
        folds=folds,
        footer=_footer(review),
    )
    return text.rstrip() + "\n" if plan else text


@cache
def _template() -> Template:
    folder = Path(__file__).parent
    environment = Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, autoescape=False)  # noqa: S701  # Markdown: `md` escapes
    return environment.get_template("page.md.j2")


def counts(review: Review) -> str:
    """The counts in Terraform's own arithmetic: a replacement is one to add and one to destroy."""
    found = review.plan.counts
    replaced = found["replace"]
    kept = found["replace-forget"]
    parts = [
        (found["import"], "import"),
        (found["create"] + replaced + kept, "add"),
        (found["update"], "change"),
        (found["delete"] + replaced, "destroy"),
    ]
    shown = [f"{n} {what}" for n, what in parts if n or what != "import"]
    if replaced:
        shown[-1] += f" ({replaced} replace)"
    shown += [f"{n} {what}" for n, what in ((found["forget"] + kept, "forget"), (found["move"], "move")) if n]
    if found["unknown"]:
        shown.append(f"{found['unknown']} unknown")
    return ", ".join(shown)


def notes(review: Review) -> Iterator[str]:
    """What a reader must know before anything else."""
    plan = review.plan
    if plan.errored:
        yield "Terraform ended with an error: this plan is not whole and cannot be applied."
    if plan.lists_nothing:
        yield "No change is listed for any resource: a refresh-only plan, or a file that was cut."
    if plan.complete is False and not plan.errored:
        yield "Only a part of the stack was planned."
    if plan.applyable is None or plan.complete is None:
        yield "The Terraform that made this plan does not say whether it is complete."
    changed = sum(output.actions != ["no-op"] for output in plan.output_changes.values())
    if changed:
        yield f"{changed} outputs change."


def _table(review: Review) -> str:
    """What was found, by question; questions without an answer are counted and not listed."""
    rows = []
    for question, _ in _QUESTIONS:
        found = Counter(f.severity for f in review.findings if _asks(f.rule) == question)
        if found:
            rows.append(f"| {question} | {', '.join(f'{found[each]} {each}' for each in SEVERITIES if found[each])} |")
    quiet = len(_QUESTIONS) - len(rows)
    if review.policies:
        new, fixed, old = (len(part) for part in (review.policies.new, review.policies.fixed, review.policies.old))
        rows.append(f"| policies | {new} new, {fixed} fixed, {old} old |")
    real, noise = review.drifted
    if real or noise:
        rows.append(f"| drift | {real} in something that matters, {noise} in form only |")
    if not rows:
        return f"Nothing found in any of {quiet} kinds of danger."
    rest = f"\n\nNothing found in {quiet} other kinds of danger." if quiet else ""
    return "\n".join(("| kind of danger | found |", "|---|---|", *rows)) + rest


@cache
def _asks(rule: str) -> str:
    matching = [
        (len(prefix), question) for question, prefixes in _QUESTIONS for prefix in prefixes if rule.startswith(prefix)
    ]
    return max(matching)[1]


def decisions(review: Review) -> Iterator[str]:
    """A line for each finding that needs a decision, the worst first; the page shortens where there are many."""
    yield from _one_by_one(review, review.decisions)


def _decisions(review: Review, room: int) -> str:
    """All of them, however many: one by one, else by rule with addresses, else by rule with how many there are."""
    found = review.decisions
    if not found:
        return "Nothing." if review.is_judged else "The plan could not be judged as a whole."
    forms: tuple[Callable[[Review, list[Finding]], Iterator[str]], ...] = (_one_by_one, _by_rule, _counted)
    for form in forms:
        lines, left = [], room
        for line in form(review, found):
            lines.append(line)
            left -= _size(line) + 1
            if left < 0 and form is not forms[-1]:
                break
        else:
            break
    return "\n".join(lines)


def _one_by_one(review: Review, found: list[Finding]) -> Iterator[str]:
    for finding in found:
        deposed = " (left behind)" if finding.change and finding.change.deposed else ""
        yield f"- **{finding.severity}** {code(finding.address)}{deposed}: {said(review, finding)}"


def _groups(found: list[Finding]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for finding in found:
        groups.setdefault((finding.severity, finding.rule), []).append(finding.address)
    return groups


def _by_rule(review: Review, found: list[Finding]) -> Iterator[str]:
    for (severity, rule), addresses in _groups(found).items():
        blocks = Counter(map(References.block, addresses))
        alone = dict(zip(map(References.block, addresses), addresses, strict=True))
        names = ", ".join(code(alone[b]) if n == 1 else f"{code(b)} ({n} instances)" for b, n in blocks.items())
        yield f"- **{severity}** {rules()[rule].title} ({review.links.rule(rule)}), {len(addresses)}: {names}"


def _counted(review: Review, found: list[Finding]) -> Iterator[str]:
    yield "Too many to list here; the JSON report lists each one."
    for (severity, rule), addresses in _groups(found).items():
        names = ", ".join(code(address[:120]) for address in addresses[:5])
        more = f" and {len(addresses) - 5} more" if len(addresses) > 5 else ""
        yield f"- **{severity}** {rules()[rule].title} ({review.links.rule(rule)}), {len(addresses)}: {names}{more}"


def _footer(review: Review) -> str:
    origin, plan = review.origin, review.plan
    version = plan.terraform_version or "unknown"
    serial = f"serial {origin.serial} of {code(origin.lineage)}" if origin.serial is not None else "not given"
    lines = [
        f"- plan {code(origin.plan_digest or 'not given')}",
        f"- its JSON {code(review.document.digest)}",
        f"- commit {code(origin.commit or 'not given')}",
        f"- state: {serial}",
        f"- Terraform {code(version)}",
    ]
    explained = link("docs/review.md", review.links.rules) if review.links.rules else "docs/review.md"
    said = f"What is not listed above was not found by any rule; {explained} explains them."
    return "\n".join((said, "", f"<details><summary>{DIGESTS}</summary>", "", *lines, "", "</details>"))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
