"""Normalising keeps what the modules decide and drops what differs between accounts, machines and providers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plans.normalise import SENSITIVE, UNKNOWN, normalise


def planned(after: dict[str, Any], unknown: Any = None, sensitive: Any = None) -> Any:
    """What is left of the only resource of a plan."""
    change = {"after": after, "after_unknown": unknown or {}, "after_sensitive": sensitive or {}}
    resource = {"mode": "managed", "type": "aws_x", "address": "module.m.aws_x.y", "change": change}
    reading = resource | {"mode": "data", "address": "module.m.data.aws_x.y"}
    elsewhere = resource | {"address": "module.m2.aws_x.y"}
    output = {"after": {"arn": "a"}, "after_unknown": {"id": True}, "after_sensitive": False}
    check = {"address": {"to_display": "module.m.check.c"}, "instances": [{"problems": [{"message": "seldom meant"}]}]}
    passed = {"address": {"to_display": "module.m.check.d"}}
    plan = {
        "resource_changes": [elsewhere, reading, resource],
        "output_changes": {"m": output},
        "checks": [passed, check],
    }
    found = normalise(plan, "m")
    assert found["counts"] == {"aws_x": 1}
    assert found["outputs"] == {"arn": "a", "id": UNKNOWN}
    assert found["warnings"] == ["seldom meant"]
    return found["values"]["aws_x.y"]


def test_marks_stand_for_what_is_unknown_or_secret() -> None:
    found = planned({"a": 1, "b": ["x", None], "c": "key", "d": None}, {"b": [False, True]}, {"c": True, "d": True})
    assert found == {"a": 1, "b": [UNKNOWN, "x"], "c": SENSITIVE}


def test_what_is_empty_or_the_providers_own_is_dropped() -> None:
    after: dict[str, Any] = {
        "tags_all": {"a": "b"},
        "timeouts": {"create": "1m"},
        "region": "r",
        "n": None,
        "l": [],
        "m": {"x": None},
    }
    assert planned(after | {"zero": 0, "no": False, "text": ""}) == {"no": False, "text": "", "zero": 0}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("arn:aws:s3:::x-123456789012-us-east-1-data", "arn:<partition>:s3:::x-<account>-<region>-data"),
        ("arn:aws-cn:s3:::x", "arn:aws-cn:s3:::x"),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com", "763104351884.dkr.ecr.<region>.amazonaws.com"),
        ("us-east-1a", "<region>a"),
        ("code/0123456789abcdef/x", "code/<digest>/x"),
        ("sha256:" + "0f" * 32, "sha256:<sha256>"),
        ("subnet-0123456789abcdef0", "subnet-0123456789abcdef0"),
    ],
)
def test_tokens_stand_for_accounts_and_digests(text: str, left: str) -> None:
    assert planned({"a": text}) == {"a": left}


def test_sets_are_sorted_and_lists_in_json_are_not() -> None:
    found = planned({"set": ["b", "a"], "blocks": [{"x": 2}, {"x": 1}], "json": json.dumps({"Choices": ["b", "a"]})})
    assert found == {"set": ["a", "b"], "blocks": [{"x": 1}, {"x": 2}], "json": {"Choices": ["b", "a"]}}


def test_statements_are_named_and_their_lists_sorted() -> None:
    statements = [
        {"Sid": "Z", "Effect": "Deny", "Action": ["b", "a"], "Condition": {"StringLike": {"k": ["2", "1"]}}},
        {"Sid": "A", "Effect": "Allow", "Action": "c"},
    ]
    found = planned({"policy": json.dumps({"Version": "1", "Statement": statements})})["policy"]["Statement"]
    assert list(found) == ["A", "Z"]
    assert found["Z"] == {"Effect": "Deny", "Action": ["a", "b"], "Condition": {"StringLike": {"k": ["1", "2"]}}}


def test_statements_without_names_stay_a_list() -> None:
    found = planned({"policy": json.dumps({"Statement": [{"Effect": "Deny"}]})})
    assert found == {"policy": {"Statement": [{"Effect": "Deny"}]}}


def test_a_name_for_two_statements_is_refused() -> None:
    with pytest.raises(AssertionError, match="a Sid is used twice"):
        planned({"policy": json.dumps({"Statement": [{"Sid": "A"}, {"Sid": "A"}]})})


def test_text_that_only_looks_like_json_stays() -> None:
    assert planned({"a": "{job} ended", "b": "[1"}) == {"a": "{job} ended", "b": "[1"}
