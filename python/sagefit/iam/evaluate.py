"""What a set of identity policies allows: IAM's evaluation of Allow and Deny, for requests within one account.

moto's own enforcement is not enough: a statement with a condition denies there, and only S3, SQS, IAM and STS pass the
resource on. Where it can judge, ``tests/proofs/test_policy.py`` compares. AWS's simulator is not to be had offline.
Rules:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html and
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sagefit.documents import as_list
from sagefit.iam.policy import Part, Statement, matches, read_policy

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
    effects = {statement.allows for statement in statements_of(policies) if applies(statement, call)}
    return effects == {True}


def allows_somewhere(policies: Iterable[dict[str, Any]], call: Call) -> bool:
    """Whether some statement allows the action of a call, on whatever resource and condition."""
    return any(
        statement.allows and _takes(statement.actions, call.action.lower()) for statement in statements_of(policies)
    )


def applies(statement: Statement, call: Call) -> bool:
    """Whether a statement speaks about a call."""
    return (
        _takes(statement.actions, call.action.lower())
        and _takes(statement.resources, call.resource)
        and all(_holds(operator, key, values, call.context) for operator, key, values in statement.conditions)
    )


def statements_of(policies: Iterable[dict[str, Any]]) -> Iterator[Statement]:
    """The statements of some documents. Raises KeyError or TypeError for a document that IAM would not accept."""
    for document in policies:
        policy = read_policy(document, exact=True)
        if policy is None:
            raise TypeError(f"{document!r} is no policy")
        yield from policy.statements


def missing_keys(statement: Statement, call: Call) -> Iterator[str]:
    """The keys of conditions that a call does not have, where a statement depends on nothing else of it."""
    if _takes(statement.actions, call.action.lower()) and _takes(statement.resources, call.resource):
        given = {key.lower() for key in call.context}
        yield from (key for operator, key, _ in statement.conditions if key not in given and operator != "null")


def _takes(part: Part, text: str) -> bool:
    return any(_like(pattern, text) for pattern in part.patterns) != part.but


def _holds(operator: str, key: str, wanted: frozenset[str], context: Context) -> bool:
    """Whether one key's condition holds; operator and key are in lower case."""
    present = {name.lower(): value for name, value in context.items()}
    found = present.get(key)
    if operator == "null":
        return (found is None) == (wanted == {"true"})
    quantifier, _, operator = operator.rpartition(":")
    if_exists = operator.endswith("ifexists")
    name = operator.removesuffix("ifexists")
    negative = "not" in name
    test = _TESTS[name.replace("not", "")]
    if found is None:
        return if_exists or negative or quantifier == "forallvalues"

    def one(value: str) -> bool:
        return any(test(want, value) for want in wanted) != negative

    if quantifier == "forallvalues":
        return all(map(one, as_list(found)))
    if quantifier == "foranyvalue":
        return any(map(one, as_list(found)))
    if isinstance(found, list):
        raise TypeError(f"{key} has several values and {operator} no quantifier")
    return one(found)


def _like(pattern: str, text: str) -> bool:
    if "${" in pattern:
        raise ValueError(f"{pattern}: policy variables are not read here")
    return matches(pattern, text)


def _arn(pattern: str, arn: str) -> bool:
    """Match each of the six parts by itself: a wildcard does not match a colon, except in the last part."""
    patterns, parts = pattern.split(":", 5), arn.split(":", 5)
    return len(patterns) == len(parts) and all(map(_like, patterns, parts))


# In lower case and without "not"; an operator that is not here is an error, not a condition that holds.
_TESTS: dict[str, Callable[[str, str], bool]] = {
    "stringequals": lambda want, value: want == value,
    "stringequalsignorecase": lambda want, value: want.lower() == value.lower(),
    "stringlike": _like,
    "arnequals": _arn,
    "arnlike": _arn,
    "bool": lambda want, value: want.lower() == value.lower(),
    "numericequals": lambda want, value: float(value) == float(want),
    "numericlessthan": lambda want, value: float(value) < float(want),
    "numericlessthanequals": lambda want, value: float(value) <= float(want),
    "numericgreaterthan": lambda want, value: float(value) > float(want),
    "numericgreaterthanequals": lambda want, value: float(value) >= float(want),
}
