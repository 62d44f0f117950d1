"""Changes by hand that the apply would undo. Terraform itself shows them only among the rest of the update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.reviewing.diff import SENSITIVE, Edit, Shades, edits
from sagefit.reviewing.hidden import hidden_by_name
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change, Plan
from sagefit.reviewing.rulebook import Hit

_NOISE: tuple[Any, ...] = ({}, [], None, "", False)
_DERIVED = ("tags_all", "timeouts", "id", "arn")


def of_plan(plan: Plan) -> Iterator[tuple[str, Hit]]:
    """Attributes that somebody changed outside Terraform and that go back to what they were."""
    planned = plan.by_address
    for drift in plan.resource_drift:
        change = planned.get(drift.address)
        if change is None or drift.kind != "update" or change.kind not in ("update", "replace"):
            continue
        for edit in by_hand(drift):
            here = _at(change.before, edit)
            if _at(change.after, edit) == edit.before != here and here == edit.after:
                hidden = hidden_by_name(edit.path, edit.after or edit.before)
                now, then = (SENSITIVE, SENSITIVE) if hidden else (edit.after, edit.before)
                yield change.address, Hit("drift-reverted", say("{}: {} → {}, set by hand", edit.where, now, then))


def by_hand(drift: Change) -> list[Edit]:
    """What really drifted: not what a refresh fills in or writes in another form."""
    values = drift.change
    shades = Shades(None, values.before_sensitive, values.after_sensitive)
    return [
        edit
        for edit in edits(values.before, values.after, shades)
        if edit.path
        and edit.path[0] not in _DERIVED
        and not edit.sensitive
        and not (any(edit.before == nothing for nothing in _NOISE) and any(edit.after == nothing for nothing in _NOISE))
    ]


def _at(values: Any, edit: Edit) -> Any:
    for step in edit.path:
        if isinstance(values, dict):
            values = values.get(step)
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            values = values[step]
        else:
            return None
    return values
