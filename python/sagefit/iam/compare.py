"""Whether a policy allows more than another: every grant of the new one is looked for in the old one.

The comparison uses patterns, not a list of AWS's actions. Only an equal or wider wildcard covers a wildcard; a list of
all the actions that it stands for does not. A grant counts as new unless an old grant provably covers it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from sagefit.iam.policy import Conditions, Part, Policy, Statement, matches, overlap

_IDENTITY = re.compile(r"AWS:arn:[\w-]+:(?:iam|sts)::(\d{12}):(?:role|user|assumed-role)/")
MOST = 20_000
"""Combinations of action, resource and principal of one statement that are looked at one by one."""


@dataclass(frozen=True)
class Lost:
    """What one statement allows beyond before. ``condition`` says whether it was allowed before under a condition."""

    statement: Statement
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    principals: tuple[str, ...]
    condition: bool = False


def widened(before: Policy, after: Policy) -> list[Lost]:
    """What ``after`` allows beyond ``before``: new grants, and what is no longer denied."""
    found = [more for each in after.allowing if (more := _beyond(each, before.allowing))]
    lost = [more for each in before.denying if (more := _beyond(each, after.denying))]
    return found + lost


def _beyond(inner: Statement, outers: Sequence[Statement]) -> Lost | None:
    """The part of ``inner`` that no statement of ``outers`` covers; None when all of it is covered."""
    if any(_covers(outer, inner) for outer in outers):
        return None
    sizes = [1 if part.but else len(part.patterns) for part in (inner.actions, inner.resources, inner.principals)]
    if sizes[0] * sizes[1] * sizes[2] > MOST:
        found = [(inner.actions, inner.resources, inner.principals)]
    else:
        found = [
            single
            for single in product(_singles(inner.actions), _singles(inner.resources), _singles(inner.principals))
            if not any(_covers(outer, _only(inner, *single)) for outer in outers)
        ]
    if not found:
        return None
    bare = [replace(outer, conditions=frozenset()) for outer in outers]
    condition = all(any(_covers(outer, _only(inner, *single)) for outer in bare) for single in found)
    actions, resources, principals = zip(*found, strict=True)
    return Lost(inner, _listed(actions), _listed(resources), _listed(principals), condition)


def _only(statement: Statement, actions: Part, resources: Part, principals: Part) -> Statement:
    return replace(statement, actions=actions, resources=resources, principals=principals)


def _singles(part: Part) -> Iterator[Part]:
    if part.but:
        yield part
    else:
        for pattern in sorted(part.patterns):
            yield Part(frozenset({pattern}))


def _listed(parts: Sequence[Part]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for part in parts for text in part.listed))


def _covers(outer: Statement, inner: Statement) -> bool:
    """Whether ``outer`` applies wherever ``inner`` does."""
    return (
        _part_covers(outer.actions, inner.actions)
        and _part_covers(outer.resources, inner.resources)
        and _part_covers(_with_identities(outer.principals, inner.principals), inner.principals)
        and _implies(inner.conditions, outer.conditions)
    )


def _with_identities(outer: Part, inner: Part) -> Part:
    """``outer`` with the roles and users of ``inner`` whose whole account it names: the account may let them in."""
    if outer.but or inner.but:
        return outer
    of_named = (
        text for text in inner.patterns if (found := _IDENTITY.match(text)) and f"AWS:{found[1]}" in outer.patterns
    )
    return replace(outer, patterns=outer.patterns.union(of_named))


def _part_covers(outer: Part, inner: Part) -> bool:
    if outer.is_any:
        return True
    if not outer.but and not inner.but:
        return all(any(matches(wide, text) for wide in outer.patterns) for text in inner.patterns)
    if outer.but and not inner.but:
        return not any(overlap(left_out, text) for left_out in outer.patterns for text in inner.patterns)
    if outer.but and inner.but:
        return all(any(matches(wide, text) for wide in inner.patterns) for text in outer.patterns)
    return False


def _implies(strong: Conditions, weak: Conditions) -> bool:
    """Whether every request that meets ``strong`` meets ``weak`` too."""
    return all(any(_condition_implies(have, need) for have in strong) for need in weak)


_FAMILIES = {"arnequals": "arnlike", "arnnotequals": "arnnotlike"}


def _condition_implies(have: tuple[str, str, frozenset[str]], need: tuple[str, str, frozenset[str]]) -> bool:
    if have == need:
        return True
    (operator, key, values), (wanted, wanted_key, wanted_values) = have, need
    if key != wanted_key:
        return False
    loose = wanted.endswith("ifexists")
    strict = not operator.endswith("ifexists")
    if not strict and not loose:
        return False
    operator, wanted = operator.removesuffix("ifexists"), wanted.removesuffix("ifexists")
    operator, wanted = _FAMILIES.get(operator, operator), _FAMILIES.get(wanted, wanted)
    if operator != wanted and (operator, wanted) != ("stringequals", "stringlike"):
        return False
    if "not" in wanted:
        return all(any(_value_matches(wanted, wide, text) for wide in values) for text in wanted_values)
    if wanted.startswith(("numericless", "dateless", "numericgreater", "dategreater")):
        return _bounds(wanted, values, wanted_values)
    return all(any(_value_matches(wanted, wide, text) for wide in wanted_values) for text in values)


def _value_matches(operator: str, wide: str, text: str) -> bool:
    if "like" in operator:
        return matches(wide, text)
    if "ipaddress" in operator:
        return inside(text, wide)
    return wide.lower() == text.lower() if "ignorecase" in operator or operator in ("bool", "null") else wide == text


def _bounds(operator: str, values: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether one limit is within the other, as numbers or else as dates, which sort as they are written."""
    edge = max if "less" in operator else min
    have, need = edge(values, key=_size), edge(wanted, key=_size)
    return _size(have) <= _size(need) if "less" in operator else _size(have) >= _size(need)


def _size(text: str) -> tuple[float, str]:
    try:
        return float(text), ""
    except ValueError:
        return 0.0, text


@lru_cache(maxsize=65536)
def inside(inner: str, outer: str) -> bool:
    """Whether one range of addresses lies in the other; equal texts do."""
    if inner == outer:
        return True
    try:
        small, large = ipaddress.ip_network(inner, strict=False), ipaddress.ip_network(outer, strict=False)
    except ValueError:
        return False
    return small.version == large.version and small.subnet_of(large)  # type: ignore[arg-type]
