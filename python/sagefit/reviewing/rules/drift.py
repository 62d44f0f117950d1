"""What was changed outside of Terraform: what of that matters, what the apply would undo, and what is dangerous.

Terraform itself shows what an apply undoes only among the rest of the update, and a refresh-only plan lists no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.documents import as_list
from sagefit.reviewing.diff import SENSITIVE, Edit, Shades, edits
from sagefit.reviewing.hidden import hidden_by_name
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change, Plan
from sagefit.reviewing.rulebook import Hit

_NOISE: tuple[Any, ...] = ({}, [], None, "", False)
_DERIVED = ("tags_all", "timeouts", "id", "arn", "attachment_count")
# Attributes of a role in which a refresh reads back what resources of their own have set: their type, and where it is.
_READ_BACK = {
    "inline_policy": ("aws_iam_role_policy", "name"),
    "managed_policy_arns": ("aws_iam_role_policy_attachment", "policy_arn"),
}
# Attributes in which a refresh reads back what a resource of its own has set: its type, what it names the object by,
# and what that is called in the object. A change by hand shows at that resource, too: it manages the whole of it.
_BUCKET = {
    "policy": "aws_s3_bucket_policy",
    "server_side_encryption_configuration": "aws_s3_bucket_server_side_encryption_configuration",
    "versioning": "aws_s3_bucket_versioning",
    "lifecycle_rule": "aws_s3_bucket_lifecycle_configuration",
    "logging": "aws_s3_bucket_logging",
    "cors_rule": "aws_s3_bucket_cors_configuration",
    "website": "aws_s3_bucket_website_configuration",
    "replication_configuration": "aws_s3_bucket_replication_configuration",
}
_MIRRORS = {
    ("aws_sns_topic", "policy"): ("aws_sns_topic_policy", "arn", "arn"),
    ("aws_sqs_queue", "policy"): ("aws_sqs_queue_policy", "queue_url", "id"),
    **{("aws_s3_bucket", name): (kind, "bucket", "id") for name, kind in _BUCKET.items()},
}


def of_plan(plan: Plan) -> Iterator[tuple[str, Hit]]:
    """Attributes that somebody changed outside Terraform and that go back to what they were."""
    planned = plan.by_address
    for drift in plan.resource_drift:
        change = planned.get(drift.address)
        if change is None or drift.kind != "update" or change.kind not in ("update", "replace"):
            continue
        for edit in by_hand(drift, plan):
            here = _at(change.before, edit)
            if _at(change.after, edit) == edit.before != here and here == edit.after:
                hidden = hidden_by_name(edit.path, edit.after or edit.before)
                now, then = (SENSITIVE, SENSITIVE) if hidden else (edit.after, edit.before)
                yield change.address, Hit("drift-reverted", say("{}: {} → {}, set by hand", edit.where, now, then))


def found(plan: Plan) -> list[Change]:
    """Objects that differ from the state in something that matters, or are gone."""
    return [drift for drift in plan.resource_drift if drift.kind != "update" or by_hand(drift, plan)]


def staying(plan: Plan) -> Iterator[Change]:
    """Those of `found` that this plan does not change back, without what is only read back in another form."""
    for drift in found(plan):
        planned = plan.by_address.get(drift.address)
        if drift.kind == "update" and (planned is None or planned.kind in ("no-op", "read")):
            kept = {name for edit in by_hand(drift, plan) if isinstance(name := edit.path[0], str)}
            after = {**drift.before, **{name: value for name, value in drift.after.items() if name in kept}}
            yield drift.model_copy(update={"change": drift.change.model_copy(update={"after": after})})


def by_hand(drift: Change, plan: Plan) -> list[Edit]:
    """What really drifted: not what a refresh fills in or writes in another form."""
    values = drift.change
    shades = Shades(None, values.before_sensitive, values.after_sensitive)
    return [
        edit
        for edit in edits(values.before, values.after, shades)
        if edit.path
        and edit.path[0] not in _DERIVED
        and not edit.sensitive
        and not (any(edit.before == nothing for nothing in _NOISE) and any(edit.after == nothing for nothing in _NOISE))
        and not _is_read_back(str(edit.path[0]), drift, plan)
    ]


def _is_read_back(attribute: str, drift: Change, plan: Plan) -> bool:
    """Whether all that ``attribute`` has now is what other resources of the stack have set on this object."""
    if mirror := _MIRRORS.get((drift.type, attribute)):
        kind, names, own = mirror
        held = drift.after.get(own)
        return any(
            each.type == kind and each.kind != "delete" and held and each.before.get(names) == held
            for each in plan.resource_changes
        )
    if drift.type != "aws_iam_role" or attribute not in _READ_BACK:
        return False
    of_type, key = _READ_BACK[attribute]
    role = drift.after.get("name")
    others = [each for each in plan.resource_changes if each.type == of_type and each.before.get("role") == role]
    known = [each.before.get(key) for each in others]
    held = [each.get(key) if isinstance(each, dict) else each for each in as_list(drift.after.get(attribute))]
    return bool(held) and all(each in known for each in held)


def _at(values: Any, edit: Edit) -> Any:
    for step in edit.path:
        if isinstance(values, dict):
            values = values.get(step)
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            values = values[step]
        else:
            return None
    return values
