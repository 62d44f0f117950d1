"""Data that is lost: what holds some is destroyed, replaced or forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

from sagefit.reviewing.message import Message, say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit, Severity, load
from sagefit.reviewing.rules.context import Context


@cache
def kept_by(of_type: str) -> Severity | None:
    """How bad the loss of an object of this type is; None where nothing is lost."""
    for severity, patterns in load("stateful.yaml").items():
        if any(fnmatchcase(of_type, pattern) for pattern in patterns):
            return severity  # type: ignore[no-any-return]  # the keys of the table
    return None


def judge(change: Change, context: Context) -> Iterator[Hit]:  # noqa: ARG001
    """Destruction of what holds data; state machines, whose runs end with them."""
    if change.type == "aws_sfn_state_machine" and change.destroys and not change.deposed:
        yield Hit("state-machine-destroy", _cause(change))
    severity = kept_by(change.type)
    if severity is None:
        return
    if change.kind in ("forget", "replace-forget"):
        yield Hit("stateful-forget", say("{} stays and is no longer managed", change.type))
    elif change.kind == "replace":
        yield Hit("stateful-replace", _cause(change), severity)
    elif change.destroys:
        yield Hit("stateful-destroy", _cause(change), severity)


def _cause(change: Change) -> Message:
    if change.deposed:
        return say("an object that an earlier replacement left behind is destroyed")
    reason = _REASONS.get(change.action_reason)
    if change.change.replace_paths:
        paths = sorted({".".join(map(str, path)) for path in change.change.replace_paths if isinstance(path, list)})
        return say("replaced because {} cannot be changed in place", paths)
    return (
        say(reason) if reason else say("{} is {}", change.type, "replaced" if change.kind == "replace" else "destroyed")
    )


_REASONS = {
    "delete_because_no_resource_config": "destroyed because it is no longer in the configuration",
    "delete_because_no_module": "destroyed because its module is no longer in the configuration",
    "delete_because_wrong_repetition": "destroyed because count or for_each came or went; a moved block keeps it",
    "delete_because_count_index": "destroyed because count is smaller; the last ones go, whichever was meant",
    "delete_because_each_key": "destroyed because its key is no longer in for_each",
    "delete_because_no_move_target": "destroyed because a moved block leads nowhere",
    "replace_because_tainted": "replaced because it is tainted",
    "replace_by_request": "replaced because somebody asked for it (-replace)",
    "replace_by_triggers": "replaced because something in replace_triggered_by changes",
    "replace_because_cannot_update": "replaced because it cannot be changed in place",
}
