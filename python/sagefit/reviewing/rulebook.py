"""The tables of rules: data, read once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from sagefit.reviewing.message import Message

Severity = Literal["critical", "high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first."""


@dataclass(frozen=True)
class Rule:
    """A kind of danger: what it is called, how bad it usually is, and why."""

    id: str
    severity: Severity
    title: str
    reason: str

    @property
    def page(self) -> str:
        """Where it is explained."""
        return f"docs/review.md#{self.id}"


@dataclass(frozen=True)
class Hit:
    """A rule that a change breaks. ``severity`` is set where it is not the rule's own."""

    rule: str
    message: Message
    severity: Severity | None = None


@cache
def rules() -> dict[str, Rule]:
    """All rules by id, in the order in which the page explains them."""
    return {name: Rule(name, **fields) for name, fields in load("rules.yaml").items()}


@cache
def place(rule: str) -> int:
    """The place of a rule among all."""
    return list(rules()).index(rule)


@cache
def load(name: str) -> Any:
    """A table of ``rules/``."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where it was built, ten times as fast
    return yaml.load((Path(__file__).parent / "rules" / name).read_text(encoding="utf-8"), loader)  # noqa: S506
