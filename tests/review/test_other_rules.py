"""Event patterns, lifecycles, parameters, silence, trust of new roles, and what was changed outside of Terraform."""

from __future__ import annotations

import json
from typing import Any

import pytest

from review.plans import change, found, policy, reviewed
from sagefit.reviewing import markdown

ROOT_OF = "arn:aws:iam::{}:root"
OWN, OTHER = "123456789012", "999900001111"


def pattern(of: Any) -> dict[str, Any]:
    return {"name": "r", "event_pattern": None if of is None else json.dumps(of)}


FAILED: dict[str, Any] = {"source": ["aws.sagemaker"], "detail": {"TrainingJobStatus": ["Failed", "Stopped"]}}


@pytest.mark.parametrize(
    ("after", "narrowed"),
    [
        ({"source": ["aws.sagemaker"], "detail": {"TrainingJobStatus": ["Failed"]}}, True),
        (FAILED | {"account": [OWN]}, True),
        (FAILED | {"detail": FAILED["detail"] | {"Name": [{"prefix": "prod-"}]}}, True),
        ({"source": ["aws.sagemaker", "aws.states"], "detail": {"TrainingJobStatus": ["Stopped", "Failed"]}}, False),
        ({"source": [{"prefix": "aws."}], "detail": {"TrainingJobStatus": [{"anything-but": "Completed"}]}}, False),
        ({"source": ["aws.sagemaker"], "detail": {"TrainingJobStatus": [{"anything-but": ["Failed"]}]}}, True),
        ({"source": ["aws.sagemaker"]}, False),
        (FAILED | {"$or": [{"region": ["a"]}, {"detail": FAILED["detail"]}]}, False),
        (FAILED | {"$or": [{"region": ["a"]}, {"region": ["b"]}]}, True),
    ],
)
def test_an_event_pattern_that_catches_less(after: Any, narrowed: bool) -> None:
    rules = found(change("aws_cloudwatch_event_rule.r", pattern(FAILED), pattern(after)))
    assert rules == ([("event-narrowed", "medium")] if narrowed else [])


def test_a_filter_on_who_is_told_catches_less() -> None:
    all_of, some = ({"topic_arn": "t", "filter_policy": text} for text in ("", json.dumps({"severity": ["high"]})))
    assert found(change("aws_sns_topic_subscription.s", all_of, some)) == [("event-narrowed", "medium")]
    assert found(change("aws_sns_topic_subscription.s", some, all_of)) == []


def images(*rules: tuple[str, str, int]) -> dict[str, Any]:
    selections = [{"tagStatus": tag, "countType": kind, "countNumber": number} for tag, kind, number in rules]
    return {"repository": "r", "policy": json.dumps({"rules": [{"selection": each} for each in selections]})}


def test_images_that_are_deleted_by_a_rule_that_was_not_there() -> None:
    old = images(("untagged", "sinceImagePushed", 14))
    new = images(("untagged", "sinceImagePushed", 14), ("any", "imageCountMoreThan", 1))
    entry = "aws_ecr_lifecycle_policy.p"
    assert found(change(entry, old, new)) == [("retention-shortened", "medium")]
    assert found(change(entry, new, old)) == []
    assert found(change(entry, None, new)) == [("retention-shortened", "medium")] * 2, "the repository exists"
    assert found(change(entry, None, new), change("aws_ecr_repository.r", None, {"name": "r"})) == []
    assert (
        found(change(entry, new, images(*[("any", "imageCountMoreThan", 1), ("tagged", "imageCountMoreThan", 5)])))
        == []
    )


def objects(*rules: tuple[str, int]) -> dict[str, Any]:
    return {"bucket": "b", "rule": [
        {"status": "Enabled", "filter": [{"prefix": prefix}], "expiration": [{"days": days}]} for prefix, days in rules
    ]}  # fmt: skip


def test_objects_that_expire_by_a_rule_that_was_not_there() -> None:
    entry = "aws_s3_bucket_lifecycle_configuration.l"
    more = objects(("logs/", 30), ("models/", 400))
    assert found(change(entry, objects(("logs/", 30)), more)) == [("retention-shortened", "high")]
    assert found(change(entry, more, objects(("logs/", 30)))) == []
    assert found(change(entry, objects(("", 30)), objects(("", 30), ("tmp/", 60)))) == [], "all expire sooner anyway"


def test_a_parameter_that_stores_a_secret_in_plain_text() -> None:
    def parameter(**values: str) -> dict[str, str]:
        return {"name": "/app/db_password", "type": "String", "value": "x"} | values

    entry = "aws_ssm_parameter.p"
    assert found(change(entry, None, parameter())) == [("secret-readable", "high")]
    assert found(change(entry, None, parameter(type="SecureString"))) == []
    assert found(change(entry, None, parameter(name="/app/max_tokens"))) == []
    assert found(change(entry, parameter(), parameter(description="d"))) == [], "it was so before"
    assert found(change(entry, parameter(), parameter(value="y"))) == [("secret-readable", "high")]


@pytest.mark.parametrize(
    ("old", "new", "operator", "expected"),
    [
        ("breaching", "missing", "GreaterThanThreshold", "medium"),
        ("breaching", "ignore", "GreaterThanThreshold", "medium"),
        ("missing", "notBreaching", "LessThanThreshold", "medium"),
        ("missing", "notBreaching", "GreaterThanThreshold", "low"),
        ("notBreaching", "ignore", "LessThanThreshold", None),
        ("ignore", "breaching", "LessThanThreshold", None),
    ],
)
def test_an_alarm_that_takes_silence_for_good(old: str, new: str, operator: str, expected: str | None) -> None:
    alarm = {"comparison_operator": operator, "threshold": 5, "metric_name": "Age"}
    before, after = alarm | {"treat_missing_data": old}, alarm | {"treat_missing_data": new}
    rules = found(change("aws_cloudwatch_metric_alarm.a", before, after))
    assert rules == ([("alarm-loosened", expected)] if expected else [])


def trust(principal: Any, **condition: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
    return {"name": "r", "assume_role_policy": policy(statement | ({"Condition": condition} if condition else {}))}


KNOWN = change("aws_sns_topic.known", {"arn": f"arn:aws:sns:eu-west-1:{OWN}:t"}, {"arn": "x"}, "no-op")
EXTERNAL = {"StringEquals": {"sts:ExternalId": "abc"}}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (trust({"AWS": ROOT_OF.format(OTHER)}), "high"),
        (trust({"AWS": f"arn:aws:iam::{OTHER}:role/ci"}), "high"),
        (trust({"AWS": ROOT_OF.format(OTHER)}, **EXTERNAL), "medium"),
        (trust({"AWS": ROOT_OF.format(OWN)}), "medium"),
        (trust({"AWS": ROOT_OF.format(OWN)}, Bool={"aws:MultiFactorAuthPresent": "true"}), None),
        (trust({"AWS": f"arn:aws:iam::{OWN}:role/ci"}), None),
        (trust({"Service": "sagemaker.amazonaws.com"}), None),
        (trust({"AWS": "*"}), "critical"),
    ],
)
def test_whom_a_new_role_trusts(values: dict[str, Any], expected: str | None) -> None:
    assert found(change("aws_iam_role.r", None, values), KNOWN) == ([("trust-opened", expected)] if expected else [])


def test_another_of_the_same_account_is_less_than_a_stranger() -> None:
    old = trust({"Service": "ec2.amazonaws.com"})
    severities = [
        found(change("aws_iam_role.r", old, trust({"AWS": f"arn:aws:iam::{account}:role/ci"})), KNOWN)
        for account in (OWN, OTHER)
    ]
    assert severities == [[("trust-opened", "medium")], [("trust-opened", "high")]]


def test_a_policy_that_nobody_can_read_yet_is_to_be_decided() -> None:
    entry = change("aws_s3_bucket_policy.p", None, {"bucket": "b"}, _after_unknown={"policy": True})
    assert found(entry) == [("iam-unknown", "medium")]


def _ingress(cidr: str) -> dict[str, Any]:
    rule = {"protocol": "tcp", "from_port": 22, "to_port": 22, "cidr_blocks": [cidr]}
    return {"name": "g", "ingress": [rule]}


def test_what_was_opened_by_hand_is_found_where_the_plan_leaves_it() -> None:
    opened = change("aws_security_group.g", _ingress("10.0.0.0/8"), _ingress("0.0.0.0/0"))
    known = {"root_module": {"resources": [{"address": "aws_security_group.g", "mode": "managed"}]}}
    review = reviewed(resource_drift=[opened], planned_values=known)
    assert [(f.rule, f.severity) for f in review.findings] == [
        ("network-opened", "critical"), ("plan-unlisted", "medium"),
    ]  # fmt: skip
    page = markdown(review)
    assert "changed outside of Terraform: `tcp` `port 22` from `0.0.0.0/0`" in page
    assert "Changed outside of Terraform (1)" in page
    back = change("aws_security_group.g", _ingress("0.0.0.0/0"), _ingress("10.0.0.0/8"))
    assert ("network-opened", "critical") not in found(back, resource_drift=[opened])


def test_policies_of_a_role_that_its_own_stack_has_set_are_no_drift() -> None:
    inline = [{"name": "use", "policy": policy({"Effect": "Allow", "Action": "*", "Resource": "*"})}]
    role = change("aws_iam_role.r", {"name": "r", "inline_policy": []}, {"name": "r", "inline_policy": inline})
    own = {"role": "r", "name": "use"}
    entry = change("aws_iam_role_policy.p", own, own, "no-op")
    assert reviewed(entry, resource_drift=[role]).drifted == (0, 1)
    assert ("iam-admin", "critical") in found(resource_drift=[role]), "nobody in this stack has set it"


def test_what_a_resource_of_its_own_has_set_on_a_topic_or_bucket_is_no_drift() -> None:
    def written(cidr: str) -> str:
        return policy({"Effect": "Allow", "Principal": cidr, "Action": "sns:Publish", "Resource": "*"})

    arn, name = "arn:aws:sns:us-east-1:123456789012:t", "b"
    topic = change("aws_sns_topic.t", {"arn": arn, "policy": "{}"}, {"arn": arn, "policy": written("*")})
    bucket = change("aws_s3_bucket.b", {"id": name, "policy": ""}, {"id": name, "policy": written("*")})
    own = [
        change("aws_sns_topic_policy.p", {"arn": arn}, {"arn": arn}, "no-op"),
        change("aws_s3_bucket_policy.p", {"bucket": name}, {"bucket": name}, "no-op"),
    ]
    assert reviewed(*own, resource_drift=[topic, bucket]).drifted == (0, 2)
    assert found(*own, resource_drift=[topic, bucket]) == []
    assert ("public-access", "critical") in found(resource_drift=[topic]), "nobody in this stack has set it"
    other = change("aws_sns_topic_policy.p", {"arn": f"{arn}2"}, {"arn": f"{arn}2"}, "no-op")
    assert ("public-access", "critical") in found(other, resource_drift=[topic])
    tampered = change("aws_sns_topic_policy.p", {"arn": arn, "policy": "{}"}, {"arn": arn, "policy": written("*")})
    assert ("public-access", "critical") in found(own[0], resource_drift=[topic, tampered]), "it shows there"
