"""Protections that are one attribute or one resource: the tables ``attributes.yaml`` and ``removals.yaml``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from sagefit.documents import UNKNOWN
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit, Severity, load
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.values import first, was, will_be


@dataclass(frozen=True)
class _Attribute:
    """One line of ``attributes.yaml``; its fields are explained there."""

    rule: str
    types: tuple[str, ...]
    path: str
    loses: bool = False
    gains: bool = False
    falls: bool = False
    rises: bool = False
    changes: bool = False
    ranks: tuple[Any, ...] = ()
    endless: tuple[Any, ...] = ()
    on_create: bool = False
    severity: Severity | None = None
    unless: str = ""
    filled_in: bool = False

    def strength(self, value: Any) -> float | None:
        """How much ``value`` protects; None where that cannot be said."""
        if value is UNKNOWN:
            return None
        if self.ranks:
            value = value if value in self.ranks else None
            return float(self.ranks.index(value)) if value in self.ranks else None
        if self.loses or self.gains:
            is_set = bool(value) and value != "false"
            return float(is_set if self.loses else not is_set)
        if value in self.endless and self.endless:
            return float("inf")
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        return -number if number is not None and self.rises else number


@cache
def _attributes(of_type: str) -> tuple[_Attribute, ...]:
    found = []
    for rule, entries in load("attributes.yaml").items():
        for entry in entries:
            if any(fnmatchcase(of_type, pattern) for pattern in entry["types"]):
                lists = {name: tuple(entry[name]) for name in ("ranks", "endless", "types") if name in entry}
                found.append(_Attribute(**{"rule": rule, **entry, **lists}))
    return tuple(found)


@cache
def _removals(of_type: str) -> tuple[tuple[str, Severity | None], ...]:
    return tuple(
        (rule, entry.get("severity"))
        for rule, entries in load("removals.yaml").items()
        for entry in entries
        if any(fnmatchcase(of_type, pattern) for pattern in entry["types"])
    )


def judge(change: Change, context: Context) -> Iterator[Hit]:
    """Attributes that protect less than before, and protections that are deleted."""
    if change.kind == "delete" and not change.deposed:
        if not context.goes_with_its_owner(change):
            for rule, severity in _removals(change.type):
                yield Hit(rule, say("{} is deleted", change.type), severity)
    elif change.kind in ("update", "replace", "create"):
        for attribute in _attributes(change.type):
            yield from _judged(attribute, change)


def _judged(attribute: _Attribute, change: Change) -> Iterator[Hit]:
    if change.kind == "create" and not attribute.on_create:
        return
    after = will_be(change, attribute.path)
    before = was(change, attribute.path) if change.kind != "create" else []
    if before == after:
        return
    if attribute.changes:
        if first(before) is not None and before != after:
            yield Hit(attribute.rule, _said(attribute, before, after), attribute.severity)
        return
    olds = [strength for value in before if (strength := attribute.strength(value)) is not None]
    news = [strength for value in after if (strength := attribute.strength(value)) is not None]
    if attribute.unless and first(will_be(change, attribute.unless)):
        return
    if change.kind == "create":
        if news and _is_weakest(attribute, after, min(news)):
            yield Hit(attribute.rule, _said(attribute, None, after), attribute.severity)
    elif UNKNOWN in after and not news:
        if attribute.filled_in:
            return
        judged_by_value = any(value is True or (attribute.ranks and value is not None) for value in before)
        if judged_by_value and olds and max(olds) > 0:
            yield Hit("protection-unknown", _said(attribute, before, after))
    elif olds and news and _weaker(olds, news):
        yield Hit(attribute.rule, _said(attribute, before, after), attribute.severity)


def _weaker(olds: list[float], news: list[float]) -> bool:
    """Whether one of several blocks got weaker, or a weaker one was added."""
    if len(olds) == len(news):
        return any(new < old for old, new in zip(sorted(olds), sorted(news), strict=True))
    return min(news) < min(olds)


def _is_weakest(attribute: _Attribute, after: list[Any], strength: float) -> bool:
    """Whether a new resource sets the weakest value; a value that it leaves open has its default."""
    open_to_default = all(value is None for value in after) and not attribute.loses
    return (strength == 0 and not open_to_default) or (bool(attribute.ranks) and strength < _null_rank(attribute))


def _null_rank(attribute: _Attribute) -> float:
    return float(attribute.ranks.index(None)) if None in attribute.ranks else 1.0


def _said(attribute: _Attribute, before: Any, after: list[Any]) -> Any:
    values = after[0] if len(after) == 1 else after
    if before is None:
        return say("{} is {}", attribute.path, values)
    return say("{}: {} → {}", attribute.path, before[0] if len(before) == 1 else before, values)
