"""Looks into the values of a plan and into the trees that shadow them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sagefit.documents import UNKNOWN
from sagefit.reviewing.plan import Change

Path = tuple[str | int, ...]


def shade(tree: Any, step: str | int) -> Any:
    """The part of a shadow tree below ``step``; True for a node means all below it."""
    if tree is True:
        return True
    if isinstance(tree, dict):
        return tree.get(step, False)
    if isinstance(tree, list) and isinstance(step, int) and step < len(tree):
        return tree[step]
    return False


def marks_any(tree: Any) -> bool:
    """Whether a shadow tree marks anything at all."""
    if isinstance(tree, dict):
        return any(map(marks_any, tree.values()))
    return any(map(marks_any, tree)) if isinstance(tree, list) else tree is True


def leaves(value: Any, unknown: Any, steps: Sequence[str]) -> Iterator[Any]:
    """The values at ``steps``, one for each item of every list on the way; None where there is no such block."""
    if unknown is True:
        yield UNKNOWN
    elif isinstance(value, list) and (steps or any(isinstance(item, dict) for item in value)):
        if not value and not (isinstance(unknown, list) and unknown):
            yield None
        for index, item in enumerate(value):
            yield from leaves(item, shade(unknown, index), steps)
    elif not steps:
        yield value
    elif isinstance(value, dict):
        yield from leaves(value.get(steps[0]), shade(unknown, steps[0]), steps[1:])
    else:
        below = unknown[0] if isinstance(unknown, list) and unknown else unknown
        yield UNKNOWN if shade(below, steps[0]) is True else None


def was(change: Change, path: str) -> list[Any]:
    """What is at the dotted ``path`` now."""
    return list(leaves(change.change.before, None, path.split(".")))


def will_be(change: Change, path: str) -> list[Any]:
    """What will be at the dotted ``path``; UNKNOWN where the plan cannot say."""
    return list(leaves(change.change.after, change.change.after_unknown, path.split(".")))


def first(values: Sequence[Any]) -> Any:
    """The only value of an attribute that is in no list."""
    return values[0] if values else None
