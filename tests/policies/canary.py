"""Write ``policies/canary.json`` anew: ``PYTHONPATH=tests .venv/bin/python -m policies.canary``.

The canary is a plan with one resource for each check that must fail it. A check that does not was not loaded.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policies.planned import CHECKS, plan
from sagefit.checkov import POLICIES


def canary(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The first failing fixture of every check, without what is null, at addresses that no other plan has."""
    found: list[dict[str, Any]] = []
    fixtures = sorted(resources(plan["planned_values"]), key=lambda resource: str(resource["address"]))
    for check in CHECKS:
        resource = next(r for r in fixtures if f"module.{check}." in r["address"] and _fails(r))
        name = f"sagefit_canary_{len(found)}"
        values = {key: value for key, value in resource["values"].items() if value not in (None, [])}
        found.append(
            {"address": f"{resource['type']}.{name}", "mode": "managed", "type": resource["type"], "name": name}
            | {"values": values}
        )
    return {
        "format_version": plan["format_version"],
        "terraform_version": plan["terraform_version"],
        "planned_values": {"root_module": {"resources": found}},
        "resource_changes": [
            {key: resource[key] for key in ("address", "mode", "type", "name")}
            | {"change": {"actions": ["create"], "before": None, "after": {}}}
            for resource in found
        ],
    }


def resources(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All resources of a plan."""
    left = [values["root_module"]]
    while left:
        module = left.pop(0)
        yield from module.get("resources", [])
        left += module.get("child_modules", [])


def _fails(resource: Mapping[str, Any]) -> bool:
    return any(part.startswith("fail") for part in resource["address"].split("."))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "tree")
        tree.mkdir()
        text = json.dumps(canary(plan(tree, Path(scratch, "cloud"))), indent=1, ensure_ascii=False)
    (POLICIES / "canary.json").write_text(f"{text}\n", encoding="utf-8")
