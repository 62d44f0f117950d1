"""The differences between two values of a plan: leaf by leaf, also inside JSON strings, and ignoring their format.

A plan does not say whether a list is a set, which has no order. So items in both lists are left out, and equal items in
another order are one difference of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sagefit.documents import UNKNOWN, parsed
from sagefit.reviewing.values import Path, marks_any, shade

SENSITIVE = "(sensitive)"
MOST_ITEMS = 2000
"""Longer lists are compared as wholes."""
_NOTHING: tuple[Any, ...] = (None, "", [], {})  # a provider reads each of these as not set


@dataclass(frozen=True)
class Edit:
    """One difference at ``path``. A side is None where there is nothing, UNKNOWN where nothing can be said yet.

    ``sensitive`` edits hold no values.
    """

    path: Path
    before: Any
    after: Any
    sensitive: bool = False

    @property
    def where(self) -> str:
        """The path as one writes it in Terraform."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).removeprefix(".")


@dataclass(frozen=True)
class Shades:
    """The trees that mark what is unknown after, and what is sensitive before and after."""

    unknown: Any = None
    hidden_before: Any = None
    hidden_after: Any = None

    def __getitem__(self, step: str | int) -> Shades:
        return Shades(*(shade(tree, step) for tree in (self.unknown, self.hidden_before, self.hidden_after)))


def edits(before: Any, after: Any, shades: Shades, path: Path = ()) -> Iterator[Edit]:
    """The differences between ``before`` and ``after``."""
    if shades.hidden_before is True or shades.hidden_after is True:
        if shades.unknown is True or before != after:
            yield Edit(path, None, None, sensitive=True)
        return
    if shades.unknown is True:
        yield from _hidden(before, shades.hidden_before, UNKNOWN, None, path)
        return
    if before == after and not isinstance(before, dict | list):
        return
    if before == after and not marks_any(shades.unknown):
        return
    if isinstance(before, str) and isinstance(after, str):
        before, after = _unwrapped(before, after)
        if before == after:
            return
    if isinstance(before, dict) and isinstance(after, dict):
        marked = shades.unknown if isinstance(shades.unknown, dict) else {}
        for key in sorted({*before, *after, *marked}, key=str):
            yield from edits(before.get(key), after.get(key), shades[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(before, after, shades, path)
    else:
        yield from _hidden(before, shades.hidden_before, after, shades.hidden_after, path)


def _lists(before: list[Any], after: list[Any], shades: Shades, path: Path) -> Iterator[Edit]:
    if any(map(marks_any, (shades.unknown, shades.hidden_before, shades.hidden_after))) or len(before) + len(after) < 3:
        for index in range(max(len(before), len(after))):
            old = before[index] if index < len(before) else None
            new = after[index] if index < len(after) else None
            yield from edits(old, new, shades[index], (*path, index))
        return
    if len(before) + len(after) > MOST_ITEMS:
        yield Edit(path, before, after)
        return
    gone, new = _only_in(before, after), _only_in(after, before)
    if not gone and not new:
        yield Edit(path, before, after)  # another order, which matters in a list and not in a set
        return
    for number in range(max(len(gone), len(new))):
        if number < len(gone) and number < len(new):
            yield from edits(gone[number][1], new[number][1], Shades(), (*path, new[number][0]))
        elif number < len(gone):
            yield Edit((*path, gone[number][0]), gone[number][1], None)
        else:
            yield Edit((*path, new[number][0]), None, new[number][1])


def _only_in(items: list[Any], others: list[Any]) -> list[tuple[int, Any]]:
    """Items with their places, less as many equal ones as ``others`` have."""
    left: dict[str, int] = {}
    for item in others:
        left[_key(item)] = left.get(_key(item), 0) + 1
    found = []
    for index, item in enumerate(items):
        key = _key(item)
        if left.get(key, 0):
            left[key] -= 1
        else:
            found.append((index, item))
    return found


def _key(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=str)


def _unwrapped(before: str, after: str) -> tuple[Any, Any]:
    """Both as JSON, where both are."""
    old, new = parsed(before), parsed(after)
    return (old, new) if not isinstance(old, str) and not isinstance(new, str) else (before, after)


def _hidden(before: Any, hidden_before: Any, after: Any, hidden_after: Any, path: Path) -> Iterator[Edit]:
    """One edit, without what is sensitive somewhere below."""
    if marks_any(hidden_before) or marks_any(hidden_after):
        yield Edit(path, None, None, sensitive=True)
    elif not (before in _NOTHING and after in _NOTHING):
        yield Edit(path, before, after)
