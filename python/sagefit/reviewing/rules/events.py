"""Event patterns and filter policies: whether everything that was caught still is."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from sagefit.documents import UNKNOWN, as_list, parsed
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.values import first, was, will_be

# Attributes that hold a pattern. Both services read the same language; an absent pattern of SNS catches everything.
_PATTERNS = {
    "aws_cloudwatch_event_rule": "event_pattern",
    "aws_cloudwatch_event_archive": "event_pattern",
    "aws_sns_topic_subscription": "filter_policy",
}


def judge(change: Change, context: Context) -> Iterator[Hit]:  # noqa: ARG001
    """A pattern that catches fewer events than before."""
    attribute = _PATTERNS.get(change.type)
    if not attribute or change.kind not in ("update", "replace") or change.deposed:
        return
    old, new = first(was(change, attribute)), first(will_be(change, attribute))
    if new is UNKNOWN or old == new or (not old and change.type == "aws_cloudwatch_event_rule"):
        return
    before, after = (parsed(side) if side else {} for side in (old, new))
    if not isinstance(before, dict) or not isinstance(after, dict):
        return
    if missed := list(_missed(before, after, ())):
        yield Hit("event-narrowed", say("{}: no longer every {}", attribute, missed))


def _missed(before: dict[str, Any], after: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Fields for which ``after`` asks for something that ``before`` did not."""
    for key, wanted in after.items():
        name = ".".join((*path, key))
        had = before.get(key)
        if isinstance(wanted, dict):
            yield from _missed(had if isinstance(had, dict) else {}, wanted, (*path, key))
        elif key == "$or" and isinstance(wanted, list):
            ways = as_list(had) or [before]
            if not all(any(not list(_missed(way, each, path)) for each in wanted) for way in ways):
                yield name
        elif had is None or isinstance(had, dict):
            yield name
        elif lost := [each for each in as_list(had) if not any(_takes(other, each) for other in as_list(wanted))]:
            yield f"{name} {', '.join(str(each) for each in lost)}"


def _takes(wide: Any, narrow: Any) -> bool:
    """Whether the one alternative of a field takes all that the other takes; False where that cannot be said."""
    if wide == narrow or wide == {"exists": True}:
        return True
    if not isinstance(wide, dict):
        return False
    (kind, value), *_ = wide.items()
    inner = narrow.get(kind) if isinstance(narrow, dict) else narrow
    if kind == "anything-but":
        if isinstance(narrow, dict):
            return "anything-but" in narrow and set(map(str, as_list(value))) <= set(map(str, as_list(inner)))
        return str(narrow) not in set(map(str, as_list(value)))
    if not isinstance(inner, str) or not isinstance(value, str):
        return False
    if kind == "prefix":
        return inner.startswith(value)
    if kind == "suffix":
        return inner.endswith(value)
    if kind == "equals-ignore-case":
        return inner.lower() == value.lower()
    return kind == "wildcard" and fnmatchcase(inner, value)
