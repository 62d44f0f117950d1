"""Settings that are lists of rules or parameters: when things are deleted, what a database asks of its clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.documents import as_list, parsed
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context

_PARAMETERS = ("aws_db_parameter_group", "aws_rds_cluster_parameter_group", "aws_redshift_parameter_group",
               "aws_docdb_cluster_parameter_group", "aws_neptune_cluster_parameter_group")  # fmt: skip
_ASKS_FOR_TLS = ("rds.force_ssl", "require_secure_transport", "require_ssl", "tls")
_AUDITS = (
    "audit_logs",
    "enable_user_activity_logging",
    "pgaudit.log",
    "neptune_enable_audit_log",
    "server_audit_logging",
)
_ON = ("1", "on", "true", "enabled", "fips-140-3", "tls1.2+", "tls1.3+")


def judge(change: Change, context: Context) -> Iterator[Hit]:
    """Rules that delete sooner, and parameters that protect less."""
    if change.type == "aws_ecr_lifecycle_policy" and change.kind in ("update", "replace"):
        kept, keeps = _counts(change.before.get("policy")), _counts(change.after.get("policy"))
        for selection, count in keeps.items():
            if count < kept.get(selection, count):
                yield Hit("retention-shortened", say("images are kept: {} → {}", kept[selection], count), "medium")
    elif change.type == "aws_s3_bucket_lifecycle_configuration" and change.kind == "create":
        days = [each.get("days") for rule in as_list(change.after.get("rule")) for each in _expirations(rule)]
        if days and not any(c.type == "aws_s3_bucket" and c.kind == "create" for c in _buckets(change, context)):
            yield Hit(
                "retention-shortened", say("objects of a bucket that exists expire after {} days", days), "medium"
            )
    elif change.type in _PARAMETERS and change.kind in ("update", "replace"):
        before, after = _parameters(change.before), _parameters(change.after)
        for name, value in before.items():
            if value in _ON and after.get(name) not in _ON:
                rule = "tls-off" if name in _ASKS_FOR_TLS else "audit-off" if name in _AUDITS else None
                if rule:
                    yield Hit(rule, say("{}: {} → {}", name, value, after.get(name)))


def _counts(policy: Any) -> dict[str, float]:
    """How many images, or of how many days, each selection of a lifecycle policy keeps."""
    document, found = parsed(policy), {}
    for rule in as_list(document.get("rules") if isinstance(document, dict) else None):
        selection = rule.get("selection") if isinstance(rule, dict) else None
        if isinstance(selection, dict) and isinstance(count := selection.get("countNumber"), int | float):
            found[repr(sorted((k, str(v)) for k, v in selection.items() if k != "countNumber"))] = float(count)
    return found


def _expirations(rule: Any) -> list[dict[str, Any]]:
    enabled = isinstance(rule, dict) and rule.get("status") == "Enabled"
    return (
        [each for each in as_list(rule.get("expiration")) if isinstance(each, dict) and each.get("days")]
        if enabled
        else []
    )


def _buckets(change: Change, context: Context) -> Iterator[Change]:
    name = change.after.get("bucket")
    yield from context.referred(change.address, "bucket")
    yield from (c for c in context.plan.managed if c.type == "aws_s3_bucket" and name and c.after.get("bucket") == name)


def _parameters(values: dict[str, Any]) -> dict[str, str]:
    blocks = [block for block in as_list(values.get("parameter")) if isinstance(block, dict)]
    return {str(block.get("name")).lower(): str(block.get("value")).lower() for block in blocks}
