"""What the checks share: their table, the platform's tags, and a base class that cannot pass by accident.

A rule is a function from the attributes of a resource, as checkov holds them, to what is wrong with it. It returns
None where the resource is none of its business.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from checkov.common.bridgecrew.severities import Severities
from checkov.common.models.enums import CheckCategories, CheckResult
from checkov.terraform.checks.resource.base_resource_check import BaseResourceCheck

REPOSITORY = Path(__file__).resolve().parents[2]

Attributes = dict[str, Any]
Rule = Callable[[Attributes], Iterable[str] | None]

_UNKNOWN = "true_after_unknown"  # what EVAL_TF_PLAN_AFTER_UNKNOWN makes of a value that is unknown at plan


def rows(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a CSV file by their first column."""
    with path.open(encoding="utf-8", newline="") as file:
        return {next(iter(row.values())): row for row in csv.DictReader(file)}


_TABLE = rows(Path(__file__).parents[1] / "checks.csv")


class Policy(BaseResourceCheck):
    """One check. Making it registers it."""

    def __init__(self, check_id: str, resources: list[str], rule: Rule) -> None:
        row = _TABLE[check_id]
        super().__init__(
            name=row["name"],
            id=check_id,
            categories=[CheckCategories[row["category"]]],
            supported_resources=resources,
            guideline=f"docs/policies.md#{check_id.lower()}",
        )
        self.severity = Severities[row["severity"]]
        self._rule = rule

    def scan_resource_conf(self, conf: Attributes) -> CheckResult:
        """Ask the rule. A rule that breaks has found something it cannot judge: checkov would drop such a result."""
        try:
            found = self._rule(conf)
            problems = None if found is None else list(found)
        except Exception as error:
            problems = [f"cannot be judged: {type(error).__name__}: {error}"]
        if problems is None:
            return CheckResult.UNKNOWN
        self.details = problems
        return CheckResult.FAILED if problems else CheckResult.PASSED


def value(conf: Attributes, name: str) -> Any:
    """An attribute without the list that checkov wraps it in; None where it is absent, null or not known yet."""
    found = conf.get(name)
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    return None if found == _UNKNOWN else found


def document(conf: Attributes, name: str) -> dict[str, Any] | None:
    """A JSON attribute as an object; None where it is not known, or an expression that only a plan evaluates."""
    found = value(conf, name)
    if isinstance(found, dict):
        return found if "Statement" in found else None  # checkov has parsed policies already
    if isinstance(found, str) and found.lstrip().startswith("{"):
        parsed = json.loads(found)
        return parsed if isinstance(parsed, dict) else None
    return None


def is_planned(conf: Attributes) -> bool:
    """Whether this is a resource of a plan, where what is absent is null or unknown, and not of HCL files."""
    return "__change_actions__" in conf


def tags(conf: Attributes) -> dict[str, str]:
    """The tags of a resource, those of the provider's ``default_tags`` included."""
    found: dict[str, str] = {}
    for name in ("tags_all", "tags"):
        given = value(conf, name)
        if isinstance(given, dict):
            found |= {key: str(items[0] if isinstance(items, list) else items) for key, items in given.items()}
    return found


def is_regulated(conf: Attributes) -> bool:
    """Whether the platform says so: the tag ``sagefit:regulated``, with any value but false."""
    return tags(conf).get("sagefit:regulated", "false").lower() != "false"


def items(given: Any) -> list[Any]:
    """One or several, as a list: IAM and the States Language allow both."""
    return given if isinstance(given, list) else [] if given is None else [given]
