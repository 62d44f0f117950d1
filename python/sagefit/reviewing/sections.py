"""The parts of the page in the order of danger, as entries that are kept or cut one by one when space is short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from sagefit.documents import UNKNOWN
from sagefit.reviewing.diff import SENSITIVE, Shades, edits
from sagefit.reviewing.judge import Finding, Review
from sagefit.reviewing.md import block, code
from sagefit.reviewing.plan import Change
from sagefit.reviewing.policies import PolicyFailure
from sagefit.reviewing.rules import drift, rules

_MOST_EDITS = 12
_QUIET = ("tags_all",)


@dataclass
class Section:
    """A fold: its title, how many entries it has, and those entries, made when there is room for them."""

    title: str
    count: int
    entries: Iterator[str]
    open: bool = False


def sections(review: Review) -> list[Section]:
    """All folds, the most dangerous first; empty ones are left out."""
    by_kind: dict[str, list[Change]] = {}
    for change in review.plan.managed:
        by_kind.setdefault(change.kind, []).append(change)
    gone = [c for kind in ("unknown", "delete", "replace", "replace-forget", "forget") for c in by_kind.get(kind, [])]
    policies = review.policies
    low = [finding for finding in review.findings if finding.severity == "low"]
    drifted = drift.found(review.plan)
    moved = [c for c in review.plan.managed if c.kind == "no-op" and (c.is_move or c.is_import)]
    outputs = sorted(name for name, output in review.plan.output_changes.items() if output.actions != ["no-op"])
    found = [
        Section("New policy failures", len(policies.new), _policies(review, policies.new)) if policies else None,
        Section("Destroyed, replaced, no longer managed", len(gone), _changes(review, gone)),
        Section("Worth knowing", len(low), (f"- {code(finding.address)} {said(review, finding)}" for finding in low)),
        Section("Changed outside of Terraform", len(drifted), _changes(review, drifted)),
        Section("Updated in place", len(by_kind.get("update", [])), _changes(review, by_kind.get("update", []))),
        Section("Created", len(by_kind.get("create", [])), (_line(change) for change in by_kind.get("create", []))),
        Section("Moved or imported without change", len(moved), (_line(change) for change in moved)),
        Section("Outputs", len(outputs), (f"- {code(name)} {_output(review, name)}" for name in outputs)),
        Section("Policy failures that end", len(policies.fixed), _policies(review, policies.fixed))
        if policies
        else None,
        Section("Policy failures that were there before", len(policies.old), _policies(review, policies.old))
        if policies
        else None,
        Section("Accepted by the repository", len(review.suppressed), _suppressed(review)),
    ]
    return [section for section in found if section and section.count]


def said(review: Review, finding: Finding) -> str:
    """What a finding says, in Markdown."""
    text = finding.message.text(lambda value: code(review.redactor.show(value)))
    return f"{rules()[finding.rule].title}: {text} ({review.links.rule(finding.rule)})"


def _changes(review: Review, changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        lines = list(islice(_edits(review, change), _MOST_EDITS + 1)) if change.kind in ("update", "replace") else []
        if len(lines) > _MOST_EDITS:
            lines[_MOST_EDITS:] = ["  …"]
        yield _line(change) + ("\n" + _indented(block(lines)) if lines else "")


def _line(change: Change) -> str:
    notes = [change.kind if change.kind != "unknown" else f"unknown actions {code(', '.join(change.change.actions))}"]
    if change.kind == "replace":
        order = "new before old" if change.change.actions[0] == "create" else "old before new"
        notes.append(order)
    if change.deposed:
        notes.append("left behind by an earlier replacement")
    if change.is_move:
        notes.append(f"moved from {code(change.previous_address)}")
    if change.is_import:
        notes.append("imported")
    return f"- {code(change.address)} {', '.join(notes)}"


def _edits(review: Review, change: Change) -> Iterator[str]:
    values = change.change
    shades = Shades(values.after_unknown, values.before_sensitive, values.after_sensitive)
    for edit in edits(values.before, values.after, shades):
        if not edit.path or edit.path[0] in _QUIET or (change.kind == "replace" and edit.after is UNKNOWN):
            continue
        sides = review.redactor.edit(edit)
        where = review.redactor.clean(edit.where)
        if sides is None:
            yield f"! {where}: {SENSITIVE} changed"
            continue
        before, after = (side.replace("\n", "⏎") for side in sides)
        if edit.before is not None:
            yield f"- {where}: {before}"
        if edit.after is not None:
            yield f"+ {where}: {after}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _output(review: Review, name: str) -> str:
    output = review.plan.output_changes[name]
    return ", ".join(output.actions) if output.actions in (["create"], ["update"], ["delete"]) else "changes"


def _policies(review: Review, failures: Iterable[PolicyFailure]) -> Iterator[str]:
    for failure in failures:
        message = code(review.redactor.show(failure.message))
        yield f"- **{failure.severity}** {code(failure.address)} {code(failure.check)} {message}"


def _suppressed(review: Review) -> Iterator[str]:
    for finding, accepted in review.suppressed:
        yield (f"- {code(finding.address)} {code(finding.rule)} until {accepted.expires}: {code(accepted.reason)}")
