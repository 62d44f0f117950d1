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
_LIFECYCLES = ("aws_s3_bucket_lifecycle_configuration", "aws_s3_bucket")
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
    if change.type == "aws_ecr_lifecycle_policy" and change.kind in ("create", "update", "replace"):
        yield from _images(change, context)
    elif change.type in _LIFECYCLES and change.kind in ("create", "update", "replace"):
        yield from _objects(change, context)
    elif change.type in _PARAMETERS and change.kind in ("update", "replace"):
        before, after = _parameters(change.before), _parameters(change.after)
        for name, value in before.items():
            if value in _ON and after.get(name) not in _ON:
                rule = "tls-off" if name in _ASKS_FOR_TLS else "audit-off" if name in _AUDITS else None
                if rule:
                    yield Hit(rule, say("{}: {} → {}", name, value, after.get(name)))


def _images(change: Change, context: Context) -> Iterator[Hit]:
    if change.kind == "create" and _is_of_new(change, context, "repository", "aws_ecr_repository"):
        return
    kept = _counts(change.before.get("policy")) if change.kind != "create" else {}
    for selection, count in _counts(change.after.get("policy")).items():
        if selection not in kept:
            if not any(_counts_alike(selection, other) and kept[other] <= count for other in kept):
                words = "images of a repository that exists are deleted, all but {} ({})"
                yield Hit("retention-shortened", say(words, f"{count:g}", dict(selection).get("countType")), "medium")
        elif count < kept[selection]:
            yield Hit("retention-shortened", say("images are kept: {} → {}", kept[selection], count), "medium")


_Selection = tuple[tuple[str, str], ...]


def _counts(policy: Any) -> dict[_Selection, float]:
    """How many images, or of how many days, each selection of a lifecycle policy keeps."""
    document, found = parsed(policy), {}
    for rule in as_list(document.get("rules") if isinstance(document, dict) else None):
        selection = rule.get("selection") if isinstance(rule, dict) else None
        if isinstance(selection, dict) and isinstance(count := selection.get("countNumber"), int | float):
            found[tuple(sorted((k, str(v)) for k, v in selection.items() if k != "countNumber"))] = float(count)
    return found


def _counts_alike(selection: _Selection, other: _Selection) -> bool:
    """Whether ``other`` deletes by the same measure and chooses among all images."""
    ours, theirs = dict(selection), dict(other)
    return theirs.get("tagStatus") == "any" and ours.get("countType") == theirs.get("countType")


def _objects(change: Change, context: Context) -> Iterator[Hit]:
    if change.kind == "create":
        days = [each.get("days") for each in _expirations(change.after).values()]
        if days and not _is_of_new(change, context, "bucket", "aws_s3_bucket"):
            words = "objects of a bucket that exists expire after {} days"
            yield Hit("retention-shortened", say(words, days), "medium")
        return
    before = _expirations(change.before)
    for scope, expiration in _expirations(change.after).items():
        if scope in before or "" in before:  # fewer days than before are seen by attributes.yaml
            continue
        words = "objects {} expire after {} days and were kept before"
        yield Hit("retention-shortened", say(words, f"under {scope}" if scope else "of the bucket", expiration["days"]))


def _expirations(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What expires, by the prefix or other filter of the rule that says so; an empty one for the whole bucket."""
    found = {}
    for rule in as_list(values.get("rule")) + as_list(values.get("lifecycle_rule")):
        if isinstance(rule, dict) and (rule.get("status") == "Enabled" or rule.get("enabled") is True):
            for each in as_list(rule.get("expiration")):
                if isinstance(each, dict) and each.get("days"):
                    found[_scope(rule)] = each
    return found


def _scope(rule: dict[str, Any]) -> str:
    filters = [_told(each) for each in as_list(rule.get("filter")) if isinstance(each, dict)]
    return " ".join(text for text in (str(rule.get("prefix") or ""), *filters) if text)


def _told(value: Any) -> str:
    """The values of a filter that say something, in one text."""
    if isinstance(value, dict):
        return " ".join(text for key in sorted(value) if (text := _told(value[key])))
    if isinstance(value, list):
        return " ".join(text for each in value if (text := _told(each)))
    return "" if value in (None, 0, False) else str(value)


def _is_of_new(change: Change, context: Context, attribute: str, of_type: str) -> bool:
    """Whether what the lifecycle is for is created by this plan."""
    name = change.after.get(attribute)
    named = (c for c in context.plan.managed if name and name in (c.after.get("bucket"), c.after.get("name")))
    return any(c.type == of_type and c.kind == "create" for c in (*context.referred(change.address, attribute), *named))


def _parameters(values: dict[str, Any]) -> dict[str, str]:
    blocks = [block for block in as_list(values.get("parameter")) if isinstance(block, dict)]
    return {str(block.get("name")).lower(): str(block.get("value")).lower() for block in blocks}
