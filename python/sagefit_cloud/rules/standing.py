"""Rules of what a platform stands on: roles, keys, parameters, and the repository of images."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from moto.iam.models import iam_backends

from sagefit.documents import as_list
from sagefit.iam.evaluate import Call, allows
from sagefit_cloud.rules.table import Answers, Place, Request, Said, among_others, of

_LIMIT = ("LimitExceeded", 409)
_LARGEST_INLINE, _LARGEST_MANAGED, _LARGEST_TRUST = 10_240, 6_144, 2_048  # characters that are no white space
_LARGEST_STANDARD = 4_096
_WAITING_DAYS = (7, 30)


def _size(text: str) -> int:
    return len(re.sub(r"\s", "", text))


def _statements(text: str) -> Iterator[dict[str, Any]]:
    """The statements of a policy; none of one that is no JSON, to which moto has an answer."""
    try:
        found = json.loads(text)
    except ValueError:
        return
    yield from as_list(found.get("Statement", [])) if isinstance(found, dict) else []


@among_others("iam:PutRolePolicy")
def size_of_inline_policies(request: Request, place: Place) -> Answers:
    """The inline policies of a role have 10,240 characters together, without white space."""
    roles = iam_backends[place.account][place.partition].roles.values()
    role = next((role for role in list(roles) if role.name == request["RoleName"]), None)
    others = {} if role is None else dict(role.policies)
    sizes = {**others, request["PolicyName"]: request["PolicyDocument"]}
    if sum(_size(text) for text in sizes.values()) > _LARGEST_INLINE:
        yield Said(f"Maximum policy size of {_LARGEST_INLINE} bytes exceeded for role {request['RoleName']}", *_LIMIT)


@of("iam:CreatePolicy", "iam:CreatePolicyVersion")
def size_of_a_managed_policy(request: Request) -> Answers:
    """A managed policy has 6,144 characters, without white space."""
    if _size(request["PolicyDocument"]) > _LARGEST_MANAGED:
        yield Said(f"Cannot exceed quota for PolicySize: {_LARGEST_MANAGED}", *_LIMIT)


@of("iam:CreateRole", "iam:UpdateAssumeRolePolicy")
def size_of_a_trust_policy(request: Request) -> Answers:
    """A trust policy has 2,048 characters, without white space."""
    text = request.get("AssumeRolePolicyDocument") or request.get("PolicyDocument", "")
    if _size(text) > _LARGEST_TRUST:
        yield Said(f"Cannot exceed quota for ACLSizePerRole: {_LARGEST_TRUST}", *_LIMIT)


@among_others("kms:CreateKey", "kms:PutKeyPolicy")
def who_may_change_a_key(request: Request, place: Place) -> Answers:
    """The policy of a key lets somebody of the account change it."""
    text = request.get("Policy")
    if not text or request.get("BypassPolicyLockoutSafetyCheck"):
        return
    owners = (place.account, f"arn:{place.partition}:iam::{place.account}:root", "*")
    own = [
        {**statement, "Resource": "*"}
        for statement in _statements(text)
        if any(who in owners or f"::{place.account}:" in who for who in as_list(_principal(statement).get("AWS", [])))
    ]
    if not allows([{"Version": "2012-10-17", "Statement": own}], Call("kms:PutKeyPolicy")):
        yield Said(
            "The new key policy will not allow you to update the key policy in the future.",
            "MalformedPolicyDocumentException",
        )


def _principal(statement: dict[str, Any]) -> dict[str, Any]:
    found = statement.get("Principal", {})
    return {"AWS": found} if isinstance(found, str) else found


@of("kms:ScheduleKeyDeletion")
def days_until_a_key_is_gone(request: Request) -> Answers:
    """A key waits 7 to 30 days for its deletion."""
    days = request.get("PendingWindowInDays", _WAITING_DAYS[1])
    if not _WAITING_DAYS[0] <= days <= _WAITING_DAYS[1]:
        yield f"PendingWindowInDays must be between {_WAITING_DAYS[0]} and {_WAITING_DAYS[1]}, not {days}"


@of("ssm:PutParameter")
def size_of_a_parameter(request: Request) -> Answers:
    """A parameter of the standard tier has 4,096 characters."""
    if request.get("Tier", "Standard") == "Standard" and len(request["Value"]) > _LARGEST_STANDARD:
        yield (
            f"Standard tier parameters support a maximum parameter value of {_LARGEST_STANDARD} characters. To create "
            "a larger parameter value, upgrade the parameter to use the advanced-parameter tier. For more information, "
            "see https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html"
        )


@of("ecr:PutLifecyclePolicy")
def last_rule_of_a_repository(request: Request) -> Answers:
    """The rule for images of any tag is the last."""
    try:
        rules = json.loads(request["lifecyclePolicyText"]).get("rules", [])
    except (ValueError, AttributeError):
        return  # moto has an answer to that
    priorities = {rule["rulePriority"]: rule["selection"]["tagStatus"] for rule in rules}
    if any(status == "any" and number < max(priorities) for number, status in priorities.items()):
        yield (
            "Invalid parameter at 'LifecyclePolicyText' failed to satisfy constraint: 'Lifecycle policy validation "
            "failure: Rule for tagStatus=ANY must have the lowest priority per storage class'"
        )
