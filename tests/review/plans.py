"""Plans written by hand, for what no Terraform is asked to make: hostile values, odd shapes, single rules."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from sagefit.reviewing import Document, Links, Review, Tuning, review


def change(address: str, before: Any, after: Any, *actions: str, **fields: Any) -> dict[str, Any]:
    """One entry of ``resource_changes``. Actions follow from the values; names of inner fields start with ``_``."""
    guessed = ["create"] if before is None else ["delete"] if after is None else ["update"]
    inner = {key.removeprefix("_"): value for key, value in fields.items() if key.startswith("_")}
    outer = {key: value for key, value in fields.items() if not key.startswith("_")}
    named = re.match(r"(?:module\.\w+(?:\[[^\]]*\])?\.)*(\w+)\.(\w+)", address)
    entry = {
        "address": address,
        "mode": "managed",
        "type": named[1] if named else "",
        "name": named[2] if named else "",
    }
    return entry | outer | {"change": {"actions": list(actions) or guessed, "before": before, "after": after} | inner}


def plan(changes: Sequence[dict[str, Any]] = (), **fields: Any) -> bytes:
    """A plan of these changes."""
    whole = {
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "timestamp": "2026-06-01T10:00:00Z",
        "complete": True,
        "errored": False,
        "applyable": True,
        "planned_values": {"root_module": {}},
        "resource_changes": list(changes),
    }
    return json.dumps(whole | fields).encode()


def reviewed(
    *changes: dict[str, Any], tuning: Tuning | None = None, links: Links | None = None, **fields: Any
) -> Review:
    """The review of a plan of these changes."""
    return review(Document("plan.json", plan(changes, **fields)), tuning=tuning, links=links)


def found(*changes: dict[str, Any], **fields: Any) -> list[tuple[str, str]]:
    """Rules and severities of what is found."""
    return [(finding.rule, finding.severity) for finding in reviewed(*changes, **fields).findings]


def policy(*statements: dict[str, Any]) -> str:
    """A policy as AWS takes it."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
