"""The table of rules, by service and operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple

Request = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a request is asked: a rule may look at what else there is."""

    account: str
    region: str
    partition: str


class Said(NamedTuple):
    """What a request that breaks a rule is answered, where that is not the service's usual error."""

    message: str
    code: str
    status: int = 400


Answers = Iterator[str | Said]
Rule = Callable[[Request, Place], Answers]

#: Rules of an operation, such as ``sagemaker:CreateTrainingJob``, in the order in which they are asked. Each takes for
#: granted what those before it ask for.
RULES: dict[str, list[Rule]] = defaultdict(list)


def of(*operations: str) -> Callable[[Callable[[Request], Answers]], Rule]:
    """Make a function of a request a rule of some operations."""

    def add(finds: Callable[[Request], Answers]) -> Rule:
        @wraps(finds)
        def rule(request: Request, _: Place) -> Answers:
            return finds(request)

        return among_others(*operations)(rule)

    return add


def among_others(*operations: str) -> Callable[[Rule], Rule]:
    """Make a function of a request and what else there is a rule of some operations."""

    def add(rule: Rule) -> Rule:
        for operation in operations:
            RULES[operation].append(rule)
        return rule

    return add


def name_of(rule: Rule) -> str:
    """The name of a rule in the ledger."""
    return rule.__name__.replace("_", "-")


def repeated(names: list[str]) -> list[str]:
    """Names that stand in a list more than once."""
    return sorted({name for name in names if names.count(name) > 1})
