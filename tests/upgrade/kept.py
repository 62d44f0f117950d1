"""States of earlier versions, and what a plan over them may not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plans.terraform import PlanJson

STATES = Path(__file__).parent / "states"
VERSIONS = sorted(folder.name for folder in STATES.iterdir() if folder.is_dir())

# May be deleted and made again: they hold nothing that is not in the code. Everything else holds data, is known
# outside of Terraform by its name, or protects what does.
REPLACEABLE = {
    "aws_cloudwatch_dashboard",
    "aws_cloudwatch_event_rule",
    "aws_cloudwatch_event_target",
    "aws_cloudwatch_metric_alarm",
    "aws_ecr_lifecycle_policy",
    "aws_iam_role_policy",
    "aws_iam_role_policy_attachment",
    "aws_s3_object",  # their keys hold the digest of their content, and apply guards those of a run in progress
}


def losses(plan: PlanJson) -> list[str]:
    """Resources that a plan deletes or replaces and that may not be: what happens, the address, what forces it."""
    return [
        f"{'/'.join(change['change']['actions'])} {change['address']}{_forced(change['change'])}"
        for change in plan["resource_changes"]
        if "delete" in change["change"]["actions"] and change["type"] not in REPLACEABLE
    ]


def _forced(change: dict[str, Any]) -> str:
    paths = [".".join(map(str, path)) for path in change.get("replace_paths", [])]
    return f" (forced by {', '.join(sorted(paths))})" if paths else ""
