"""What a set of identity policies allows: IAM's evaluation of Allow and Deny, for requests within one account.

moto's own enforcement is not enough: a statement with a condition denies there, and only S3, SQS, IAM and STS pass the
resource on. Where it can judge, ``tests/proofs/test_policy.py`` compares. AWS's simulator is not to be had offline.
Rules:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html and
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Context = Mapping[str, str | list[str]]


@dataclass(frozen=True)
class Call:
    """One request as IAM sees it: keys of ``context`` that are absent are absent from the request."""

    action: str
    resource: str = "*"
    context: Context = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.action} {self.resource.rsplit(':', 1)[-1]}"


def allows(policies: Iterable[dict[str, Any]], call: Call) -> bool:
    """Whether some statement allows a call and none denies it."""
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in _list(policy["Statement"])
        if applies(statement, call)
    }
    return effects == {"Allow"}


def allows_somewhere(policies: Iterable[dict[str, Any]], call: Call) -> bool:
    """Whether some statement allows the action of a call, on whatever resource and condition."""
    return any(
        statement["Effect"] == "Allow" and _named(statement, "Action", _is(call.action))
        for policy in policies
        for statement in _list(policy["Statement"])
    )


def applies(statement: dict[str, Any], call: Call) -> bool:
    """Whether a statement speaks about a call."""
    return (
        _named(statement, "Action", _is(call.action))
        and _named(statement, "Resource", lambda pattern: _like(pattern, call.resource))
        and all(
            _holds(operator, key, [str(value) for value in _list(values)], call.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _is(action: str) -> Callable[[str], bool]:
    return lambda pattern: _like(pattern.lower(), action.lower())


def _named(statement: dict[str, Any], element: str, matches: Callable[[str], bool]) -> bool:
    if f"Not{element}" in statement:
        return not any(map(matches, _list(statement[f"Not{element}"])))
    return any(map(matches, _list(statement[element])))


def _holds(operator: str, key: str, wanted: list[str], context: Context) -> bool:
    """Whether one key's condition holds."""
    present = {name.lower(): value for name, value in context.items()}
    found = present.get(key.lower())
    if operator == "Null":
        return (found is None) == (wanted[0] == "true")
    quantifier, _, operator = operator.rpartition(":")
    if_exists = operator.endswith("IfExists")
    name = operator.removesuffix("IfExists")
    negative = "Not" in name
    test = _TESTS[name.replace("Not", "")]
    if found is None:
        return if_exists or negative or quantifier == "ForAllValues"

    def one(value: str) -> bool:
        return any(test(want, value) for want in wanted) != negative

    if quantifier == "ForAllValues":
        return all(map(one, _list(found)))
    if quantifier == "ForAnyValue":
        return any(map(one, _list(found)))
    if isinstance(found, list):
        raise TypeError(f"{key} has several values and {operator} no quantifier")
    return one(found)


def _like(pattern: str, text: str) -> bool:
    if "${" in pattern:
        raise ValueError(f"{pattern}: policy variables are not read here")
    expression = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _arn(pattern: str, arn: str) -> bool:
    """Each of the six parts by itself: a wildcard does not reach over a colon, but in the last one."""
    patterns, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(patterns) == len(parts) and all(map(_like, patterns, parts))


# Without "Not"; an operator that is not here is an error, not a condition that holds.
_TESTS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda want, value: want == value,
    "StringEqualsIgnoreCase": lambda want, value: want.lower() == value.lower(),
    "StringLike": _like,
    "ArnEquals": _arn,
    "ArnLike": _arn,
    "Bool": lambda want, value: want.lower() == value.lower(),
    "NumericEquals": lambda want, value: float(value) == float(want),
    "NumericLessThan": lambda want, value: float(value) < float(want),
    "NumericLessThanEquals": lambda want, value: float(value) <= float(want),
    "NumericGreaterThan": lambda want, value: float(value) > float(want),
    "NumericGreaterThanEquals": lambda want, value: float(value) >= float(want),
}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
