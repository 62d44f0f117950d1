"""The tables of rules: every line of them finds what it is there for, and does not mind the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from review.plans import change, found, policy, reviewed
from sagefit.paths import ROOT
from sagefit.reviewing.rules import SEVERITIES, rules

_FOLDER = ROOT / "python" / "sagefit" / "reviewing" / "rules"


def _table(name: str) -> Any:
    return yaml.safe_load((_FOLDER / name).read_text(encoding="utf-8"))


def _entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for rule, entries in _table("attributes.yaml").items():
        for entry in entries:
            for pattern in entry["types"]:
                yield rule, pattern.replace("*", "lustre_file_system"), entry


ENTRIES = list(_entries())


def _strong_and_weak(entry: dict[str, Any]) -> tuple[Any, Any]:
    if "ranks" in entry:
        return entry["ranks"][-1], entry["ranks"][0]
    if entry.get("falls"):
        return 30, 7
    if entry.get("rises"):
        return 1, 9
    if entry.get("gains"):
        return False, True
    return ("one", "two") if entry.get("changes") else (True, False)


def _at(path: str, value: Any) -> dict[str, Any]:
    """A resource with ``value`` at ``path``; what stands around it are blocks."""
    first, _, rest = path.partition(".")
    return {first: [_at(rest, value)] if rest else value}


@pytest.mark.parametrize("index", range(len(ENTRIES)))
def test_every_line_of_the_table_finds_its_change_and_not_the_way_back(index: int) -> None:
    rule, of_type, entry = ENTRIES[index]
    strong, weak = (_at(entry["path"], value) for value in _strong_and_weak(entry))
    expected = (rule, entry.get("severity") or rules()[rule].severity)
    assert expected in found(change(f"{of_type}.x", strong, weak))
    assert expected in found(change(f"{of_type}.x", strong, weak, "delete", "create"))
    if not entry.get("changes"):
        assert expected not in found(change(f"{of_type}.x", weak, strong))
    assert expected not in found(change(f"{of_type}.x", strong, strong | {"tags": {"a": "b"}}))


def test_every_table_names_rules_that_there_are() -> None:
    for name in ("attributes.yaml", "removals.yaml"):
        assert set(_table(name)) <= set(rules())
    assert set(_table("stateful.yaml")) <= set(SEVERITIES)
    assert all(rule.severity in SEVERITIES and rule.title and rule.reason for rule in rules().values())


def _stateful() -> Iterator[tuple[str, str]]:
    for severity, patterns in _table("stateful.yaml").items():
        for pattern in patterns:
            yield severity, pattern.replace("*", "lustre_file_system")


STATEFUL = list(_stateful())


@pytest.mark.parametrize("index", range(len(STATEFUL)))
def test_whatever_holds_data_is_missed(index: int) -> None:
    severity, of_type = STATEFUL[index]
    assert ("stateful-destroy", severity) in found(change(f"{of_type}.x", {"a": 1}, None))
    assert ("stateful-replace", severity) in found(change(f"{of_type}.x", {"a": 1}, {"a": 2}, "create", "delete"))
    assert ("stateful-forget", "medium") in found(change(f"{of_type}.x", {"a": 1}, None, "forget"))
    assert found(change(f"{of_type}.x", None, {"a": 1})) == []


REMOVALS = [
    (rule, of_type, entry)
    for rule, entries in _table("removals.yaml").items()
    for entry in entries
    for of_type in entry["types"]
]


@pytest.mark.parametrize("index", range(len(REMOVALS)))
def test_every_protection_is_missed_when_it_goes(index: int) -> None:
    rule, of_type, entry = REMOVALS[index]
    expected = (rule, entry.get("severity") or rules()[rule].severity)
    assert expected in found(change(f"{of_type}.x", {"bucket": "b"}, None))
    assert expected not in found(change(f"{of_type}.x", {"tags": {"a": "b"}}, {"tags": {"a": "c"}}))


def test_a_setting_that_goes_with_its_bucket_is_not_told_twice() -> None:
    bucket = change("aws_s3_bucket.b", {"bucket": "b", "id": "b"}, None)
    setting = change("aws_s3_bucket_versioning.v", {"bucket": "b", "id": "b"}, None)
    assert found(bucket, setting) == [("stateful-destroy", "critical")]
    assert found(setting) == [("versioning-off", "high")]


def test_a_protection_that_will_be_known_only_after_apply() -> None:
    entry = change("aws_ebs_volume.v", {"encrypted": True}, {}, _after_unknown={"encrypted": True})
    assert found(entry) == [("protection-unknown", "low")]
    key = change("aws_sns_topic.t", {"kms_master_key_id": "alias/a"}, {}, _after_unknown={"kms_master_key_id": True})
    assert found(key) == [], "another key is a key"


def _group(*cidrs: str, low: int = 443, high: int = 443) -> dict[str, Any]:
    return {"ingress": [{"protocol": "tcp", "from_port": low, "to_port": high, "cidr_blocks": list(cidrs)}]}


@pytest.mark.parametrize(
    ("before", "after", "severity"),
    [
        (_group("10.0.0.0/16"), _group("10.0.0.0/8"), "medium"),
        (_group("10.0.0.0/8"), _group("10.0.0.0/16"), None),
        (_group("10.0.0.0/16"), _group("0.0.0.0/0"), "medium"),
        (_group("10.0.0.0/16"), _group("::/0", low=22, high=22), "critical"),
        (_group("10.0.0.0/16"), _group("0.0.0.0/1"), "high"),
        (_group("0.0.0.0/0"), _group("0.0.0.0/0", low=0, high=65535), "critical"),
        (_group("0.0.0.0/0", low=0, high=65535), _group("0.0.0.0/0"), None),
        (_group("10.0.0.0/16", "10.1.0.0/16"), _group("10.1.0.0/16", "10.0.0.0/16"), None),
        (_group("10.0.0.0/16"), _group(), None),
    ],
    ids=range(9),
)
def test_security_groups(before: Any, after: Any, severity: str | None) -> None:
    hits = found(change("aws_security_group.g", before, after))
    assert hits == ([("network-opened", severity)] if severity else [])


def test_a_database_in_a_new_group_for_private_addresses_is_no_danger() -> None:
    assert found(change("aws_security_group.g", None, _group("10.0.0.0/16", low=5432, high=5432))) == []
    assert found(change("aws_security_group.g", None, _group("0.0.0.0/0", low=5432, high=5432))) == [
        ("network-opened", "critical")
    ]


ALARM = {
    "comparison_operator": "GreaterThanThreshold", "metric_name": "CPUUtilization", "namespace": "AWS/EC2",
    "statistic": "Average", "threshold": 80, "period": 60, "evaluation_periods": 3, "alarm_actions": ["arn:t", "arn:u"],
}  # fmt: skip
_SELECT = 'SELECT MAX("MemoryUtilization") FROM SCHEMA("/aws/sagemaker/TrainingJobs", Host) GROUP BY Host'

_QUERY = {"return_data": True, "expression": _SELECT}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({"threshold": 100}, [("alarm-never-fires", "high"), ("alarm-loosened", "medium")]),
        ({"threshold": 100, "comparison_operator": "GreaterThanOrEqualToThreshold"}, [("alarm-loosened", "medium")]),
        ({"threshold": 500, "namespace": "Custom"}, [("alarm-loosened", "medium")]),
        ({"threshold": 500, "statistic": "Sum"}, [("alarm-loosened", "medium")]),
        ({"threshold": 70}, []),
        ({"threshold": 85}, [("alarm-loosened", "low")]),
        ({"evaluation_periods": 5}, [("alarm-loosened", "low")]),
        ({"evaluation_periods": 9}, [("alarm-loosened", "medium")]),
        (
            {"comparison_operator": "LessThanThreshold", "threshold": 0},
            [("alarm-loosened", "high"), ("alarm-never-fires", "high"), ("alarm-loosened", "medium")],
        ),
        ({"alarm_actions": ["arn:u", "arn:t"]}, []),
        ({"alarm_actions": ["arn:u"]}, [("alarm-silenced", "high")]),
        ({"alarm_actions": []}, [("alarm-silenced", "high")]),
        ({"actions_enabled": False}, [("alarm-silenced", "high")]),
        ({"datapoints_to_alarm": 4}, [("alarm-never-fires", "high"), ("alarm-loosened", "low")]),
        (
            {"metric_name": None, "statistic": None, "threshold": 100, "metric_query": [_QUERY]},
            [("alarm-never-fires", "high"), ("alarm-loosened", "medium")],
        ),
    ],
    ids=range(15),
)  # fmt: skip
def test_alarms(after: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert sorted(found(change("aws_cloudwatch_metric_alarm.a", ALARM, ALARM | after))) == sorted(expected)


def test_what_is_attached() -> None:
    def attached(name: str, *others: dict[str, Any]) -> list[tuple[str, str]]:
        arn = f"arn:aws:iam::{name}"
        return found(change("aws_iam_role_policy_attachment.a", None, {"role": "r", "policy_arn": arn}), *others)

    role = change("aws_iam_role.r", None, {"name": "r", "assume_role_policy": policy()})
    assert attached("aws:policy/AdministratorAccess", role) == [("iam-admin", "critical")]
    assert attached("aws:policy/AmazonS3FullAccess", role) == [("iam-widened", "high")]
    assert attached("aws:policy/AmazonS3ReadOnlyAccess", role) == []
    assert attached("aws:policy/AmazonS3ReadOnlyAccess") == [("iam-widened", "medium")]
    assert attached("123456789012:policy/own") == [("iam-widened", "high")]
    unknown = change("aws_iam_role_policy_attachment.a", None, {"role": "r"}, _after_unknown={"policy_arn": True})
    assert found(unknown) == [("iam-widened", "medium")]
    assert found(unknown, role) == []


def test_an_output_that_loses_its_mark() -> None:
    output = {"actions": ["update"], "before": "x", "after": "x", "before_sensitive": True, "after_sensitive": False}
    findings = reviewed(output_changes={"secret": output}).findings
    assert [(f.rule, f.address) for f in findings] == [("secret-readable", "secret")]


def test_machines_that_are_not_ours_are_counted() -> None:
    def machine(**request: Any) -> dict[str, Any]:
        state = {"Type": "Task", "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync", "Parameters": request}
        return {"definition": json.dumps({"StartAt": "T", "States": {"T": state}})}

    full = {"EnableManagedSpotTraining": True, "CheckpointConfig": {"S3Uri": "s3://c"}, "VpcConfig": {"Subnets": ["s"]}}
    less = {"StoppingCondition": {"MaxRuntimeInSeconds": 7200}}
    more = {"StoppingCondition": {"MaxRuntimeInSeconds": 72000}}
    hits = found(change("aws_sfn_state_machine.m", machine(**full, **less), machine(**more)))
    assert {rule for rule, _ in hits} == {
        "job-spot-lost",
        "job-checkpoints-lost",
        "job-network-lost",
        "job-runtime-grown",
    }
    assert found(change("aws_sfn_state_machine.m", machine(**more), machine(**full, **less))) == []
