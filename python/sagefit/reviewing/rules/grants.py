"""Rights that are given by attaching: managed policies, boundaries, permissions of functions, keys and shares."""

from __future__ import annotations

from collections.abc import Iterator

from sagefit.documents import UNKNOWN, as_list
from sagefit.iam.danger import ADMINISTRATORS, READERS
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit, Severity
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.values import first, was, will_be

# The attribute with policies' ARNs, and whom they are given to.
ATTACHMENTS = {
    "aws_iam_role_policy_attachment": ("policy_arn", "role", "aws_iam_role"),
    "aws_iam_role_policy_attachments_exclusive": ("policy_arns", "role_name", "aws_iam_role"),
    "aws_iam_user_policy_attachment": ("policy_arn", "user", "aws_iam_user"),
    "aws_iam_group_policy_attachment": ("policy_arn", "group", "aws_iam_group"),
    "aws_iam_policy_attachment": ("policy_arn", "", ""),
    "aws_iam_role": ("managed_policy_arns", "", ""),
    "aws_ssoadmin_managed_policy_attachment": ("managed_policy_arn", "", ""),
    "aws_eks_access_policy_association": ("policy_arn", "", ""),
}
# Resources that are a right in themselves.
_NEW_RIGHTS = {
    "aws_iam_access_key": "a key that is valid until somebody deletes it",
    "aws_iam_user_login_profile": "a password for the console",
    "aws_kms_grant": "a grant on a key, which no policy shows",
}
_BOUNDED = ("aws_iam_role", "aws_iam_user")


def judge(change: Change, context: Context) -> Iterator[Hit]:
    """What somebody gets by an attachment, or stays without a boundary."""
    if change.kind not in ("create", "update", "replace") or change.deposed:
        return
    if change.type in ATTACHMENTS:
        yield from _attached(change, context)
    if change.type in _BOUNDED and change.kind != "create":
        yield from _boundary(change)
    if change.type in (
        "aws_lambda_permission",
        "aws_lambda_layer_version_permission",
        "aws_cloudwatch_event_permission",
    ):
        yield from _permission(change)
    if change.type in (
        "aws_ami_launch_permission",
        "aws_snapshot_create_volume_permission",
        "aws_ram_principal_association",
    ):
        yield from _shared(change)
    if change.type in _NEW_RIGHTS and change.kind == "create":
        yield Hit("iam-widened", say("{}", _NEW_RIGHTS[change.type]), "medium")
    if change.type == "aws_iam_group_membership" or change.type == "aws_iam_user_group_membership":
        yield from _members(change)


def _attached(change: Change, context: Context) -> Iterator[Hit]:
    attribute, owner, of_type = ATTACHMENTS[change.type]
    before = _arns(was(change, attribute)) if change.kind != "create" else set()
    fresh = change.kind == "create" and bool(owner) and context.is_new(change, owner, of_type)
    for arn in sorted(_arns(will_be(change, attribute)) - before):
        severity = _of_managed(arn, fresh or (change.type == "aws_iam_role" and change.kind == "create"))
        if severity:
            rule = "iam-admin" if severity == "critical" else "iam-widened"
            yield Hit(rule, say("{} is attached", arn), severity)
    unknown = will_be(change, attribute) == [UNKNOWN]
    if unknown and change.kind == "create" and owner and not fresh:
        yield Hit("iam-widened", say("a policy that this plan makes is attached"), "medium")
    lost = change.kind == "update" and bool(before) and unknown
    if lost and context.references.gives(change.address, attribute):
        yield Hit("iam-unknown", say("{} will be known only after apply", attribute))


def _arns(values: list[object]) -> set[str]:
    return {str(arn) for value in values for arn in as_list(value) if arn is not None and arn is not UNKNOWN}


def _of_managed(arn: str, fresh: bool) -> Severity | None:
    """How bad it is that somebody gets this managed policy; a new role needs some, so only the widest count there."""
    name = arn.rsplit(":", 1)[-1]
    if ADMINISTRATORS.search(name) or name.endswith(("ClusterAdminPolicy",)):
        return "critical"
    if ":iam::aws:" in arn and "FullAccess" in name:
        return "high"
    if fresh:
        return None
    return "medium" if READERS.search(name) or ":iam::aws:" in arn else "high"


def _boundary(change: Change) -> Iterator[Hit]:
    before, after = first(was(change, "permissions_boundary")), first(will_be(change, "permissions_boundary"))
    if before and after is None:
        yield Hit("iam-boundary-lost", say("the boundary {} is removed", before))
    elif before and before != after:
        severity: Severity | None = "medium" if after is UNKNOWN else None
        yield Hit("iam-boundary-lost", say("the boundary changes: {} → {}", before, after), severity)


def _permission(change: Change) -> Iterator[Hit]:
    principal = first(will_be(change, "principal"))
    account = any(
        first(will_be(change, name)) for name in ("source_account", "source_arn", "principal_org_id", "organization_id")
    )
    narrow = (
        account or first(will_be(change, "function_url_auth_type")) == "AWS_IAM" or first(will_be(change, "condition"))
    )
    old = change.before if change.kind != "create" else {}
    if principal == "*" and not narrow:
        yield Hit("public-access", say("anybody may do {}", first(will_be(change, "action")) or "this"))
    elif old and old.get("principal") != principal and principal is not UNKNOWN:
        yield Hit("iam-widened", say("principal: {} → {}", old.get("principal"), principal), "high")
    elif old:
        for name in ("source_account", "source_arn", "principal_org_id", "event_source_token"):
            if old.get(name) and first(will_be(change, name)) is None:
                yield Hit("iam-condition-lost", say("{} {} is no longer required", name, old[name]))
        if old.get("action") != change.after.get("action") and "*" in str(change.after.get("action")):
            yield Hit("iam-widened", say("action: {} → {}", old.get("action"), change.after.get("action")), "high")
    elif isinstance(principal, str) and principal.endswith(".amazonaws.com") and not account:
        words = "{} may call it for any account: neither source_arn nor source_account is set"
        yield Hit("iam-widened", say(words, principal), "medium")


def _shared(change: Change) -> Iterator[Hit]:
    if first(will_be(change, "group")) == "all":
        yield Hit("public-access", say("shared with everybody"))
    elif change.kind == "create":
        who = [first(will_be(change, name)) for name in ("account_id", "principal", "organization_arn")]
        yield Hit("iam-widened", say("shared with {}", [str(each) for each in who if each is not None]), "high")


def _members(change: Change) -> Iterator[Hit]:
    attribute = "users" if change.type == "aws_iam_group_membership" else "groups"
    more = _arns(will_be(change, attribute)) - (_arns(was(change, attribute)) if change.kind != "create" else set())
    if more and change.kind != "create":
        yield Hit("iam-widened", say("{} joins: {}", attribute, sorted(more)), "high")
