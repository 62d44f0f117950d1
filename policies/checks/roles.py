"""Checks of IAM policies: whoever creates training jobs, and whoever hands a role on."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from sagefit_policy import Attributes, Policy, document, items

_POLICIES = ["aws_iam_group_policy", "aws_iam_policy", "aws_iam_role_policy", "aws_iam_user_policy"]
Statement = dict[str, Any]


def _allowing(conf: Attributes, *actions: str) -> list[Statement]:
    """The statements that allow one of the actions, by wildcard or by naming what they do not allow."""
    policy = document(conf, "policy") or {}
    found = [s for s in items(policy.get("Statement")) if s.get("Effect") == "Allow"]
    return [s for s in found if any(_allows(s, action) for action in actions)]


def _allows(statement: Statement, action: str) -> bool:
    if "NotAction" in statement and not _names(statement["NotAction"], action):
        return True
    return _names(statement.get("Action"), action)


def _names(patterns: Any, action: str) -> bool:
    return any(fnmatchcase(action.lower(), str(pattern).lower()) for pattern in items(patterns))


def _condition(statement: Statement, key: str, *operators: str) -> list[Any]:
    """What a statement compares a key with, by one of the operators; a set operator before them changes nothing."""
    return [
        item
        for operator, keys in (statement.get("Condition") or {}).items()
        for name, given in keys.items()
        if name.lower() == key.lower() and operator.rpartition(":")[2] in operators
        for item in items(given)
    ]


def _sid(statement: Statement) -> str:
    return str(statement.get("Sid") or "a statement without Sid")


def _keep_alive(conf: Attributes) -> list[str] | None:
    found = _allowing(conf, "sagemaker:CreateTrainingJob")
    limits = ("NumericLessThanEquals", "NumericLessThanEqualsIfExists", "NumericEquals", "NumericEqualsIfExists")
    return (
        [
            f"{_sid(statement)}: no upper limit on sagemaker:KeepAlivePeriod"
            for statement in found
            if not _condition(statement, "sagemaker:KeepAlivePeriod", *limits)
        ]
        if found
        else None
    )


def _instance_types(conf: Attributes) -> list[str] | None:
    found = _allowing(conf, "sagemaker:CreateTrainingJob", "sagemaker:CreateHyperParameterTuningJob")
    return [problem for statement in found for problem in _any_type(statement)] if found else None


def _any_type(statement: Statement) -> Iterator[str]:
    listed = _condition(statement, "sagemaker:InstanceTypes", "StringEquals", "StringLike")
    if not listed or "*" in listed:
        yield f"{_sid(statement)}: no condition on sagemaker:InstanceTypes"
    # ForAllValues holds for a request that names no type at all.
    elif "false" not in [str(item).lower() for item in _condition(statement, "sagemaker:InstanceTypes", "Null")]:
        yield f"{_sid(statement)}: no Null condition on sagemaker:InstanceTypes"


def _pass_role(conf: Attributes) -> list[str] | None:
    found = _allowing(conf, "iam:PassRole")
    return [problem for statement in found for problem in _any_role(statement)] if found else None


def _any_role(statement: Statement) -> Iterator[str]:
    resources = items(statement.get("Resource"))
    if not resources or any("*" in str(arn) for arn in resources):
        yield f"{_sid(statement)}: passes roles by wildcard: name the role's ARN"
    services = _condition(statement, "iam:PassedToService", "StringEquals")
    if not services or any("*" in str(service) for service in services):
        yield f"{_sid(statement)}: passes the role to any service: add a condition on iam:PassedToService"


Policy("CKV_SAGEFIT_9", _POLICIES, _keep_alive)
Policy("CKV_SAGEFIT_10", _POLICIES, _pass_role)
Policy("CKV_SAGEFIT_11", _POLICIES, _instance_types)
