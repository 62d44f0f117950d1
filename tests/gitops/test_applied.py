"""The apply role of the examples may make, change and remove whatever the modules plan, and says so for every type.

The resources are those of the complete plans that ``tests/plans`` keeps. For each type there is a row with the calls
that the AWS provider sends for it (provider 5.100, ``internal/service``). A type without a row fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitops.test_examples import ACCOUNT, REGION, Roles, policy
from sagefit.iam.evaluate import Call, allows
from sagefit.paths import ROOT

pytestmark = pytest.mark.xdist_group("gitops")

Values = dict[str, Any]
_PLANS = ROOT / "tests" / "plans" / "__snapshots__" / "test_plans"
_BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/training-boundary"
_PLACES = {"<account>": ACCOUNT, "<region>": REGION, "<partition>": "aws", "<digest>": "0123456789abcdef"}
_TAGS = {"aws:RequestTag/sagefit:platform": "{platform}", "aws:ResourceTag/sagefit:platform": "{platform}"}


def _arn(service: str, rest: str, *, place: str = f"{REGION}:{ACCOUNT}") -> str:
    return f"arn:aws:{service}:{place}:{rest}"


def _calls(actions: str, resource: str, context: dict[str, str] | None = None) -> list[Call]:
    service, _, names = actions.partition(":")
    return [Call(f"{service}:{name}", resource, dict(context or {})) for name in names.split()]


def _bucket(actions: str) -> Callable[[Values, Values], list[Call]]:
    return lambda values, _roles: _calls(f"s3:{actions}", f"arn:aws:s3:::{values['bucket']}")


def _role(actions: str, values: Values, roles: Values) -> list[Call]:
    """Calls on a role: a policy of it names it without its path, which is that of the role in the same plan."""
    name = str(values.get("role", values["name"]))
    return _calls(
        f"iam:{actions}",
        _arn("iam", f"role{roles[name]}{name}", place=f":{ACCOUNT}"),
        {"iam:PermissionsBoundary": _BOUNDARY},
    )


_ROWS: dict[str, Callable[[Values, Values], list[Call]]] = {
    "aws_cloudwatch_dashboard": lambda v, _: _calls(
        "cloudwatch:PutDashboard DeleteDashboards",
        _arn("cloudwatch", f"dashboard/{v['dashboard_name']}", place=f":{ACCOUNT}"),
    ),
    "aws_cloudwatch_event_rule": lambda v, _: _calls(
        "events:PutRule DeleteRule TagResource", _arn("events", f"rule/{v['name']}")
    ),
    "aws_cloudwatch_event_target": lambda v, _: [
        *_calls("events:PutTargets RemoveTargets", _arn("events", f"rule/{v['rule']}")),
        *(_passed(v["role_arn"], "events.amazonaws.com") if v.get("role_arn") else []),
    ],
    "aws_cloudwatch_log_group": lambda v, _: _calls(
        "logs:CreateLogGroup PutRetentionPolicy DeleteRetentionPolicy AssociateKmsKey DisassociateKmsKey "
        "DeleteLogGroup TagResource UntagResource",
        _arn("logs", f"log-group:{v['name']}"),
    ),
    "aws_cloudwatch_metric_alarm": lambda v, _: _calls(
        "cloudwatch:PutMetricAlarm DeleteAlarms TagResource UntagResource",
        _arn("cloudwatch", f"alarm:{v['alarm_name']}"),
    ),
    "aws_ecr_lifecycle_policy": lambda v, _: _calls(
        "ecr:PutLifecyclePolicy DeleteLifecyclePolicy", _arn("ecr", f"repository/{v['repository']}")
    ),
    "aws_ecr_repository": lambda v, _: [
        *_calls("ecr:CreateRepository DeleteRepository TagResource", _arn("ecr", f"repository/{v['name']}")),
        *_key("CreateGrant", "ecr", {"kms:GrantIsForAWSResource": "true"}),
        *_key("RetireGrant", "ecr"),
    ],
    "aws_iam_policy": lambda v, _: _calls(
        "iam:CreatePolicy CreatePolicyVersion DeletePolicyVersion DeletePolicy TagPolicy",
        _arn("iam", f"policy{v['path']}{v['name']}", place=f":{ACCOUNT}"),
    ),
    "aws_iam_role": lambda v, roles: _role(
        "CreateRole DeleteRole TagRole UntagRole UpdateAssumeRolePolicy UpdateRole UpdateRoleDescription "
        "PutRolePermissionsBoundary",
        v,
        roles,
    ),
    "aws_iam_role_policy": lambda v, roles: _role("PutRolePolicy DeleteRolePolicy", v, roles),
    "aws_kms_alias": lambda v, _: [
        *_calls("kms:CreateAlias UpdateAlias DeleteAlias", _arn("kms", v["name"])),
        *_calls("kms:CreateAlias UpdateAlias DeleteAlias", _arn("kms", "key/1"), _TAGS),
    ],
    "aws_kms_key": lambda _v, _: [
        *_calls("kms:CreateKey TagResource", "*", _TAGS),
        *_calls("kms:EnableKeyRotation PutKeyPolicy ScheduleKeyDeletion", _arn("kms", "key/1"), _TAGS),
        # Tags that change are sent without those that stay.
        *_calls(
            "kms:TagResource UntagResource UpdateKeyDescription",
            _arn("kms", "key/1"),
            {key: value for key, value in _TAGS.items() if "ResourceTag" in key},
        ),
    ],
    "aws_s3_bucket": _bucket("CreateBucket DeleteBucket PutBucketTagging"),
    "aws_s3_bucket_lifecycle_configuration": _bucket("PutLifecycleConfiguration"),
    "aws_s3_bucket_logging": _bucket("PutBucketLogging"),
    "aws_s3_bucket_ownership_controls": _bucket("PutBucketOwnershipControls"),
    "aws_s3_bucket_policy": _bucket("PutBucketPolicy DeleteBucketPolicy"),
    "aws_s3_bucket_public_access_block": _bucket("PutBucketPublicAccessBlock"),
    "aws_s3_bucket_server_side_encryption_configuration": _bucket("PutEncryptionConfiguration"),
    "aws_s3_bucket_versioning": _bucket("PutBucketVersioning"),
    "aws_s3_object": lambda v, _: [
        *_calls("s3:PutObject GetObject DeleteObjectVersion", f"arn:aws:s3:::{v['bucket']}/{v['key']}"),
        *_calls("s3:ListBucketVersions", f"arn:aws:s3:::{v['bucket']}", {"s3:prefix": v["key"]}),
        *_key("GenerateDataKey Decrypt", "s3"),
    ],
    "aws_scheduler_schedule": lambda v, _: [
        *_calls(
            "scheduler:CreateSchedule UpdateSchedule DeleteSchedule",
            _arn("scheduler", f"schedule/default/{v['name']}"),
        ),
        *_passed(v["target"][0]["role_arn"], "scheduler.amazonaws.com"),
        *_key("GenerateDataKey Decrypt", "scheduler"),
    ],
    "aws_sfn_state_machine": lambda v, _: [
        *_calls(
            "states:CreateStateMachine UpdateStateMachine DeleteStateMachine TagResource",
            _arn("states", f"stateMachine:{v['name']}"),
        ),
        *_passed(v["role_arn"], "states.amazonaws.com"),
        *_calls("logs:CreateLogDelivery PutResourcePolicy DeleteLogDelivery", "*"),
    ],
    "aws_sns_topic": lambda v, _: _calls(
        "sns:CreateTopic SetTopicAttributes DeleteTopic TagResource", _arn("sns", v["name"])
    ),
    "aws_sns_topic_policy": lambda _v, _: [],  # SetTopicAttributes of the topic
    "aws_sns_topic_subscription": lambda v, _: [*_calls("sns:Subscribe", v["topic_arn"]), Call("sns:Unsubscribe")],
    "aws_ssm_parameter": lambda v, _: _calls(
        "ssm:PutParameter DeleteParameter AddTagsToResource", _arn("ssm", f"parameter{v['name']}")
    ),
}  # fmt: skip


def _key(actions: str, service: str, more: dict[str, str] | None = None) -> list[Call]:
    """Use of the platform's key by a service, for the caller."""
    via = {"kms:ViaService": f"{service}.{REGION}.amazonaws.com"}
    return _calls(f"kms:{actions}", _arn("kms", "key/1"), _TAGS | via | (more or {}))


def _passed(role: str, service: str) -> list[Call]:
    return _calls("iam:PassRole", role, {"iam:PassedToService": service})


def _planned(path: Path) -> Iterator[tuple[str, list[Call]]]:
    """Address and calls of each resource of a complete plan."""
    text = path.read_text(encoding="utf-8")
    for name, value in _PLACES.items():
        text = text.replace(name, value)
    values: dict[str, Values] = json.loads(text)["values"]
    types = {address: next(part for part in address.split(".") if part.startswith("aws_")) for address in values}
    roles = {values[a]["name"]: values[a]["path"] for a, type_ in types.items() if type_ == "aws_iam_role"}
    for address, type_ in types.items():
        yield address, _ROWS[type_](values[address], roles)


@pytest.fixture(scope="module")
def apply_role(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Policies of the role that applies both platforms of the complete plans."""
    roles = Roles(tmp_path_factory.mktemp("applied") / "roles")
    planned = roles.plan(platforms=["minimal", "regulated"], permissions_boundary_arn=_BOUNDARY)
    return policy(planned, "apply")


@pytest.mark.parametrize("plan", sorted(_PLANS.glob("*.json")), ids=lambda path: path.stem)
def test_the_apply_role_makes_and_removes_what_is_planned(apply_role: list[dict[str, Any]], plan: Path) -> None:
    platform = "minimal" if "minimal" in plan.stem else "regulated"
    denied = []
    for address, calls in _planned(plan):
        for call in calls:
            context = {key: str(value).format(platform=platform) for key, value in call.context.items()}
            if not allows(apply_role, Call(call.action, call.resource, context)):
                denied.append(f"{address}: {call}")
    assert denied == []


@pytest.mark.parametrize("action", ["iam:CreateRole", "s3:DeleteBucket", "kms:Decrypt", "s3:ListBucketVersions"])
def test_what_another_platform_has_is_not_its_own(apply_role: list[dict[str, Any]], action: str) -> None:
    for _, calls in _planned(_PLANS / "test_golden[minimal-platform].json"):
        for call in calls:
            if call.action == action:
                context = {key: str(value).format(platform="other") for key, value in call.context.items()}
                resource = call.resource.replace("sagefit-minimal", "sagefit-other")
                assert not allows(apply_role, Call(action, resource, context)), call
