"""cfn-lint's opinion of definitions and policies: they are put into a template, which is what it reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cfnlint.api import lint  # type: ignore[import-untyped]
from cfnlint.config import ManualArgs  # type: ignore[import-untyped]

_ROLE = "arn:aws:iam::123456789012:role/states"


def findings(*, definitions: Sequence[dict[str, Any]] = (), policies: Sequence[dict[str, Any]] = ()) -> list[str]:
    """Rule and message of everything that is found; hints count too, among them actions that resources do not fit."""
    machines = {
        f"Machine{index}": _resource("StepFunctions::StateMachine", RoleArn=_ROLE, Definition=definition)
        for index, definition in enumerate(definitions)
    }
    managed = {
        f"Policy{index}": _resource("IAM::ManagedPolicy", PolicyDocument=policy)
        for index, policy in enumerate(policies)
    }
    template = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": machines | managed}
    found = lint(json.dumps(template), config=ManualArgs(include_checks=["I"]))
    return [f"{match.rule.id}: {match.message}" for match in found]


def _resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}
