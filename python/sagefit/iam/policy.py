"""Policies as statements in one form, whichever of IAM's ways of writing was used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sagefit.documents import UNKNOWN, as_list, parsed

ANY = frozenset({"*"})
NOT_KNOWN = "(known after apply)"

Conditions = frozenset[tuple[str, str, frozenset[str]]]
"""Operator and key in lower case, and values."""


@dataclass(frozen=True)
class Part:
    """Actions, resources or principals of a statement: those that match ``patterns``, or with ``but`` all others."""

    patterns: frozenset[str]
    but: bool = False

    @property
    def is_any(self) -> bool:
        """Whether it leaves nothing out."""
        return not self.but and "*" in self.patterns

    @property
    def listed(self) -> list[str]:
        """The patterns in order; with ``but`` each has ``not`` before it."""
        return [f"{'not ' if self.but else ''}{pattern}" for pattern in sorted(self.patterns)]


@dataclass(frozen=True)
class Statement:
    """One statement. Principals are written ``kind:name``; an identity's policy has any."""

    allows: bool
    actions: Part
    resources: Part
    principals: Part
    conditions: Conditions
    sid: str = ""

    @property
    def condition_keys(self) -> set[str]:
        """The keys that the conditions test, in lower case."""
        return {key for _, key, _ in self.conditions}


@dataclass(frozen=True)
class Policy:
    """A policy, or the part of it that is known; ``whole`` says whether all of it is known."""

    statements: tuple[Statement, ...]
    whole: bool = True

    @property
    def allowing(self) -> list[Statement]:
        """What it grants."""
        return [statement for statement in self.statements if statement.allows]

    @property
    def denying(self) -> list[Statement]:
        """What it forbids."""
        return [statement for statement in self.statements if not statement.allows]


EMPTY = Policy(())


def read_policy(value: Any, *, exact: bool = False) -> Policy | None:
    """The policy in an attribute; None when it is not known yet or is no policy.

    A part that a review of a plan cannot see counts as everything it could be. With ``exact`` nothing is guessed: an
    empty list matches nothing, and a statement without action or resource raises KeyError.
    """
    if value is UNKNOWN:
        return None
    if value is None or value == "":
        return EMPTY
    document = parsed(value)
    if not isinstance(document, dict):
        return None
    found = [_statement(each, exact=exact) for each in as_list(document.get("Statement")) if isinstance(each, dict)]
    return Policy(tuple(found))


def read_document_data(after: dict[str, Any], unknown: Any) -> Policy:
    """What is known of a policy that ``aws_iam_policy_document`` will make: its ``statement`` blocks."""
    found = []
    for block in as_list(after.get("statement")):
        if isinstance(block, dict):
            found.append(_statement(dict(_of_block(block)), unknown=True))
    merged = after.get("source_policy_documents") or after.get("override_policy_documents")
    return Policy(tuple(found), whole=not merged and not _hides_statements(unknown))


def _of_block(block: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "Sid", block.get("sid")
    yield "Effect", block.get("effect") or "Allow"
    for name, attribute in {
        "Action": "actions",
        "NotAction": "not_actions",
        "Resource": "resources",
        "NotResource": "not_resources",
    }.items():
        if block.get(attribute):
            yield name, block[attribute]
    for name, attribute in {"Principal": "principals", "NotPrincipal": "not_principals"}.items():
        if block.get(attribute):
            yield (
                name,
                {p["type"]: p.get("identifiers") for p in block[attribute] if isinstance(p, dict) and p.get("type")},
            )
    tests: dict[str, dict[str, Any]] = {}
    for condition in as_list(block.get("condition")):
        if isinstance(condition, dict):
            tests.setdefault(str(condition.get("test")), {})[str(condition.get("variable"))] = condition.get("values")
    yield "Condition", tests


def _hides_statements(unknown: Any) -> bool:
    return isinstance(unknown, dict) and unknown.get("statement") is True


def _statement(fields: dict[str, Any], *, unknown: bool = False, exact: bool = False) -> Statement:
    identity = "Principal" not in fields and "NotPrincipal" not in fields
    return Statement(
        allows=str(fields.get("Effect")).lower() != "deny",
        actions=_part(fields, "Action", unknown, fold=True, exact=exact),
        resources=_part(fields, "Resource", unknown or not identity, exact=exact),
        principals=Part(ANY) if identity else _principals(fields),
        conditions=_conditions(fields.get("Condition")),
        sid=str(fields.get("Sid") or ""),
    )


def _part(fields: dict[str, Any], name: str, lenient: bool, *, fold: bool = False, exact: bool = False) -> Part:
    but = f"Not{name}" in fields
    written = f"Not{name}" if but else name
    patterns = {_text(item, fold) for item in as_list(fields[written] if exact else fields.get(written))}
    if not patterns and not exact:  # not known yet, or the resource that the policy hangs on
        patterns = {NOT_KNOWN} if lenient and name == "Resource" and "Principal" not in fields else {"*"}
    return Part(frozenset(patterns), but)


def _text(item: Any, fold: bool) -> str:
    if item is None or item is UNKNOWN:
        return NOT_KNOWN
    text = re.sub(r"\*+", "*", str(item))
    text = "*" if fold and text == "*:*" else text
    return text.lower() if fold else text


def _principals(fields: dict[str, Any]) -> Part:
    but = "NotPrincipal" in fields
    written = fields.get("NotPrincipal" if but else "Principal")
    if not isinstance(written, dict):
        return Part(frozenset("*" if item == "*" else f"AWS:{_text(item, False)}" for item in as_list(written)), but)
    found = set()
    for kind, names in written.items():
        for name in as_list(names) or [None]:
            text = _text(name, False)
            everyone = text == "*" and str(kind).lower() in ("aws", "*")
            account = re.fullmatch(r"(\d{12})|arn:[\w-]+:iam::(\d{12}):root", text)
            found.add("*" if everyone else f"AWS:{account[1] or account[2]}" if account else f"{kind}:{text}")
    return Part(frozenset(found), but)


def _conditions(written: Any) -> Conditions:
    found = set()
    for operator, keys in written.items() if isinstance(written, dict) else ():
        for key, values in keys.items() if isinstance(keys, dict) else ():
            texts = frozenset(
                str(value).lower() if isinstance(value, bool) else _text(value, False) for value in as_list(values)
            )
            found.add((str(operator).lower(), str(key).lower(), texts or frozenset({NOT_KNOWN})))
    return frozenset(found)


@lru_cache(maxsize=65536)
def matches(pattern: str, text: str) -> bool:
    """Whether ``pattern`` matches everything that ``text``, which may itself be a pattern, stands for."""
    if pattern in ("*", text):
        return True
    if "*" not in pattern and "?" not in pattern:
        return False
    return _regex(pattern).fullmatch(text) is not None


@lru_cache(maxsize=65536)
def _regex(pattern: str) -> re.Pattern[str]:
    parts = (
        ".*" if part == "*" else "[^*]" if part == "?" else re.escape(part) for part in re.split(r"([*?])", pattern)
    )
    return re.compile("".join(parts), re.DOTALL)


def overlap(one: str, other: str) -> bool:
    """Whether two patterns may both take in the same thing; where that is hard to say, they may."""
    if matches(one, other) or matches(other, one):
        return True
    start = min(len(one.split("*")[0].split("?")[0]), len(other.split("*")[0].split("?")[0]))
    return one[:start] == other[:start] and ("*" in one or "?" in one) and ("*" in other or "?" in other)
