"""How a thing that a plan would create is called where it exists: the identifier that Terraform imports it by.

All of it is known at plan, but for a KMS key, which is found by its alias or its tags.
Source of the forms: the pages of the resources in the AWS provider's documentation, under "Import".
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

_KEY = "aws_kms_key"
#: The identifier of each type, made of its arguments, and of partition, region and account.
IDENTIFIERS = {
    "aws_cloudwatch_dashboard": "{dashboard_name}",
    "aws_cloudwatch_event_rule": "{event_bus_name}/{name}",
    "aws_cloudwatch_event_target": "{event_bus_name}/{rule}/{target_id}",
    "aws_cloudwatch_log_group": "{name}",
    "aws_cloudwatch_metric_alarm": "{alarm_name}",
    "aws_ecr_lifecycle_policy": "{repository}",
    "aws_ecr_repository": "{name}",
    "aws_iam_policy": "arn:{partition}:iam::{account}:policy{path}{name}",
    "aws_iam_role": "{name}",
    "aws_iam_role_policy": "{role}:{name}",
    "aws_iam_role_policy_attachment": "{role}/{policy_arn}",
    "aws_kms_alias": "{name}",
    _KEY: "{key_id}",
    "aws_s3_bucket": "{bucket}",
    "aws_s3_bucket_lifecycle_configuration": "{bucket}",
    "aws_s3_bucket_logging": "{bucket}",
    "aws_s3_bucket_ownership_controls": "{bucket}",
    "aws_s3_bucket_policy": "{bucket}",
    "aws_s3_bucket_public_access_block": "{bucket}",
    "aws_s3_bucket_server_side_encryption_configuration": "{bucket}",
    "aws_s3_bucket_versioning": "{bucket}",
    "aws_s3_object": "{bucket}/{key}",
    "aws_scheduler_schedule": "{group_name}/{name}",
    "aws_sfn_state_machine": "arn:{partition}:states:{region}:{account}:stateMachine:{name}",
    "aws_sns_topic": "arn:{partition}:sns:{region}:{account}:{name}",
    "aws_sns_topic_policy": "{arn}",
    "aws_ssm_parameter": "{name}",
}
#: Types without one, and why an apply makes no second one of them.
WITHOUT = {
    "aws_servicequotas_service_quota": "it is a request, and AWS refuses a second one while the first is open",
    "aws_sns_topic_subscription": "AWS gives it a random name, and to subscribe an address again changes nothing",
}
_DEFAULTS = {"event_bus_name": "default", "group_name": "default"}


@dataclass(frozen=True)
class Place:
    """Where this process works."""

    partition: str
    region: str
    account: str

    @classmethod
    def here(cls) -> Place:
        """By who AWS says that we are."""
        sts = boto3.client("sts")
        who = sts.get_caller_identity()
        return cls(who["Arn"].split(":")[1], sts.meta.region_name, who["Account"])


def identifiers(document: Mapping[str, Any], place: Place) -> dict[str, str]:
    """The identifiers, by address, of all that a plan (``terraform show -json``) would create and that may exist."""
    creates = [each for each in document.get("resource_changes", ()) if each["change"]["actions"] == ["create"]]
    found = {}
    for each in creates:
        form = IDENTIFIERS.get(each["type"])
        if form is None:
            continue
        known = {name: value for name, value in (each["change"]["after"] or {}).items() if value is not None}
        if each["type"] == _KEY and (key := _key_of(each, known, creates)):
            known["key_id"] = key
        with contextlib.suppress(KeyError):  # a part of it is not known before the apply
            found[each["address"]] = form.format_map(_DEFAULTS | vars(place) | known)
    return found


def _key_of(key: Mapping[str, Any], known: Mapping[str, Any], creates: list[Any]) -> str | None:
    """The KMS key that such a plan has made before: the one of its alias, else the only one with its tags."""
    kms = boto3.client("kms")
    names = _aliases_of(key, creates)
    for page in kms.get_paginator("list_aliases").paginate():
        for alias in page["Aliases"]:
            if alias["AliasName"] in names and "TargetKeyId" in alias:
                return str(alias["TargetKeyId"])
    tags = known.get("tags_all") or {}
    with contextlib.suppress(ClientError):  # not everybody who applies may search by tags
        pages = (
            boto3.client("resourcegroupstaggingapi")
            .get_paginator("get_resources")
            .paginate(
                ResourceTypeFilters=["kms:key"],
                TagFilters=[{"Key": name, "Values": [value]} for name, value in tags.items()],
            )
        )
        found = [each["ResourceARN"] for page in pages for each in page["ResourceTagMappingList"]]
        same = [arn for arn in found if _is_like(kms.describe_key(KeyId=arn)["KeyMetadata"], known)]
        if tags and len(same) == 1:
            return str(same[0].rpartition("/")[2])
    return None


def _is_like(key: Any, known: Mapping[str, Any]) -> bool:
    return bool(key["KeyState"] == "Enabled" and key["Description"] == known.get("description", ""))


def _aliases_of(key: Mapping[str, Any], creates: list[Any]) -> set[str]:
    """Names of the aliases that the plan gives to a key: those of its module, where that has one key."""
    keys: dict[str, int] = defaultdict(int)
    for each in creates:
        keys[each.get("module_address", "")] += each["type"] == _KEY
    module = key.get("module_address", "")
    return {
        each["change"]["after"]["name"]
        for each in creates
        if each["type"] == "aws_kms_alias" and each.get("module_address", "") == module and keys[module] == 1
    }
