"""The ledger ``rules.yaml``, read."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

import yaml_tables
from aws.bases import definition, fresh, policy

LEDGER = Path(__file__).with_name("rules.yaml")


class Asked(BaseModel):
    """A request: an operation, and what is changed of its valid request."""

    model_config = ConfigDict(extra="forbid")

    asks: str
    breaks: dict[str, Any]

    @property
    def request(self) -> dict[str, Any]:
        """The request."""
        request = fresh(self.asks)
        for path, value in self.breaks.items():
            *parents, last = path.split(".")
            target: Any = request
            for name in parents:
                target = target[int(name)] if name.isdigit() else target.setdefault(name, {})
            if value is None:
                del target[last]
            else:
                target[last] = _made(value)
        return request


class Row(Asked):
    """A rule: what ``rules.yaml`` says of its fields."""

    rule: str
    says: str = ""
    after: list[Asked] = []
    code: str = "ValidationException"
    answer: str
    known: Literal["answer", "rule", "read"]
    source: str
    before: str = ""
    plan_alone: bool = False
    never: str = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> Row:
        if bool(self.before) == bool(self.never):
            raise ValueError(f"{self.rule}: give before, or never")
        return self


@cache
def rows() -> list[Row]:
    """All rules."""
    return [Row.model_validate(row) for row in yaml_tables.read(LEDGER)]


def _made(value: Any) -> Any:
    """A value, or the large one that is described."""
    match value:
        case {"text": text, "times": times}:
            return text * times
        case {"numbered": name, "times": times}:
            return {f"{name}{number}": "1" for number in range(times)}
        case {"states": states}:
            return definition(**states)
        case {"long": letters}:
            return definition(**{"x" * letters: {"Type": "Pass", "End": True}})
        case {"policy": service, "size": size}:
            return _policy(service, size)
    return copy.deepcopy(value)


def _policy(service: str, size: int) -> str:
    """A policy of so many characters without white space."""
    filler: dict[str, Any] = {"Sid": "", "Effect": "Allow", "Action": f"{service}:Get*"}
    if service == "sts":
        filler |= {"Action": "sts:AssumeRole", "Principal": {"Service": "states.amazonaws.com"}}
    else:
        filler |= {"Resource": "*"}
    filler["Sid"] = "x" * (size - len(json.dumps(json.loads(policy(filler)), separators=(",", ":"))))
    return policy(filler)
