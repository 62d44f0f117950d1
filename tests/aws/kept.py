"""What plans hold, read from the plans that are kept: complete ones, and what inventories name.

No Terraform runs here. ``tests/plans`` shows that the kept plans are what Terraform plans.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml_tables

PLANS = Path(__file__).parents[1] / "plans"
ACCOUNT, REGION = "123456789012", "us-east-1"
UNKNOWN, MISSING = "<unknown>", "__missing__"
_PLACES = {"<account>": ACCOUNT, "<region>": REGION, "<partition>": "aws"}


@dataclass(frozen=True)
class Resource:
    """A planned resource."""

    plan: str
    """The name of a complete plan, or of the case whose inventory names it."""
    address: str
    values: dict[str, Any]
    is_whole: bool
    """Whether all of its values are kept, and not only those that an inventory names."""

    @property
    def kind(self) -> str:
        """Its type."""
        return next(part for part in self.address.split(".") if part.startswith("aws_"))

    def __str__(self) -> str:
        return f"{self.plan}:{self.address}"


@cache
def plans() -> dict[str, dict[str, Any]]:
    """Complete plans and inventories by name."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (PLANS / "__snapshots__").rglob("*.json")}
    cases = {
        str(path.relative_to(PLANS / "cases").with_suffix("")): json.dumps(yaml_tables.read(path))
        for path in (PLANS / "cases").rglob("*.yaml")
    }
    return {name: json.loads(_placed(text)) for name, text in {**texts, **cases}.items()}


def _placed(text: str) -> str:
    for place, value in _PLACES.items():
        text = text.replace(place, value)
    return text


def resources(kind: str) -> list[Resource]:
    """All kept resources of a type."""
    found = [
        Resource(plan, address, values, plan.startswith("test_golden"))
        for plan, kept in plans().items()
        for address, values in kept.get("values", {}).items()
        if values != MISSING
    ]
    return [each for each in found if each.kind == kind]
