"""Comparing policies statement by statement: what is wider is found, what only looks different is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.plans import change, found, policy
from sagefit.iam import Policy, read_policy, widened
from sagefit.iam.policy import matches, overlap

READ = {
    "Effect": "Allow",
    "Action": ["s3:GetObject", "s3:ListBucket"],
    "Resource": ["arn:aws:s3:::a", "arn:aws:s3:::a/*"],
}


def _read(*statements: dict[str, Any]) -> Policy:
    read = read_policy(policy(*statements))
    assert read is not None
    return read


def _with(**fields: Any) -> dict[str, Any]:
    return READ | fields


WIDER = {
    "another action": _with(Action=["s3:GetObject", "s3:ListBucket", "s3:PutObject"]),
    "a wildcard action": _with(Action="s3:Get*"),
    "a wildcard in the middle": _with(Action="s3:*Object"),
    "every action": _with(Action="*"),
    "every action, in two stars": _with(Action="*:*"),
    "all but some": {"Effect": "Allow", "NotAction": "iam:*", "Resource": READ["Resource"]},
    "another resource": _with(Resource=["arn:aws:s3:::a/*", "arn:aws:s3:::b/*"]),
    "a wider resource": _with(Resource="arn:aws:s3:::a*"),
    "every resource": _with(Resource="*"),
    "all resources but one": {"Effect": "Allow", "Action": READ["Action"], "NotResource": "arn:aws:s3:::a"},
}
SAME = {
    "a text for a list": _with(Action="s3:GetObject"),
    "another order": _with(Action=["s3:ListBucket", "s3:GetObject"]),
    "another case": _with(Action=["S3:GETOBJECT"]),
    "a name": _with(Sid="Named"),
    "a condition more": _with(Condition={"Bool": {"aws:SecureTransport": "true"}}),
    "one resource less": _with(Resource="arn:aws:s3:::a/*"),
    "a narrower resource": _with(Resource="arn:aws:s3:::a/x/*"),
    "a denial more": {"Effect": "Deny", "Action": "s3:*", "Resource": "*"},
}


@pytest.mark.parametrize("name", WIDER)
def test_wider(name: str) -> None:
    assert widened(_read(READ), _read(WIDER[name]))


@pytest.mark.parametrize("name", SAME)
def test_not_wider(name: str) -> None:
    assert widened(_read(READ), _read(SAME[name])) == []


def test_statements_may_be_split_and_joined() -> None:
    split = [_with(Action=action, Resource=arn) for action in READ["Action"] for arn in READ["Resource"]]
    assert widened(_read(READ), _read(*split)) == []
    assert widened(_read(*split), _read(READ)) == []


CONDITIONS = [
    ({"StringEquals": {"k": "a"}}, {"StringEquals": {"k": ["a", "b"]}}, True),
    ({"StringEquals": {"k": ["a", "b"]}}, {"StringEquals": {"k": "a"}}, False),
    ({"StringEquals": {"k": "a"}}, {"StringEqualsIfExists": {"k": "a"}}, True),
    ({"StringEquals": {"k": "a"}}, {"StringLike": {"k": "a*"}}, True),
    ({"StringLike": {"k": "a*"}}, {"StringEquals": {"k": "ab"}}, False),
    ({"StringNotEquals": {"k": ["a", "b"]}}, {"StringNotEquals": {"k": "a"}}, True),
    ({"StringNotEquals": {"k": "a"}}, {"StringNotEquals": {"k": ["a", "b"]}}, False),
    ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, {"IpAddress": {"aws:SourceIp": "10.1.0.0/16"}}, False),
    ({"IpAddress": {"aws:SourceIp": "10.0.0.0/16"}}, {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True),
    ({"NumericLessThanEquals": {"k": "10"}}, {"NumericLessThanEquals": {"k": "100"}}, True),
    ({"NumericLessThanEquals": {"k": "100"}}, {"NumericLessThanEquals": {"k": "20"}}, False),
    ({"Bool": {"aws:SecureTransport": "true"}}, {"Bool": {"aws:SecureTransport": True}}, False),
    ({"ArnEquals": {"k": "arn:aws:s3:::a"}}, {"ArnLike": {"k": "arn:aws:s3:::a"}}, False),
    ({"StringEquals": {"k": "a"}, "Bool": {"l": "true"}}, {"StringEquals": {"k": "a"}}, True),
    ({"ForAllValues:StringEquals": {"k": "a"}}, {"ForAnyValue:StringEquals": {"k": "a"}}, True),
]


@pytest.mark.parametrize(("before", "after", "wider"), CONDITIONS, ids=range(len(CONDITIONS)))
def test_conditions(before: dict[str, Any], after: dict[str, Any], wider: bool) -> None:
    lost = widened(_read(_with(Condition=before)), _read(_with(Condition=after)))
    assert bool(lost) == wider
    assert all(each.condition for each in lost)


@pytest.mark.parametrize(("before", "after", "wider"), CONDITIONS, ids=range(len(CONDITIONS)))
def test_conditions_of_a_denial_are_read_the_other_way_round(
    before: dict[str, Any], after: dict[str, Any], wider: bool
) -> None:
    deny = {"Effect": "Deny", "Action": "*", "Resource": "*"}
    assert bool(widened(_read(deny | {"Condition": after}), _read(deny | {"Condition": before}))) == wider


_PATTERN = st.text(alphabet="ab*", min_size=1, max_size=5)
_STATEMENT = st.fixed_dictionaries(
    {
        "Effect": st.sampled_from(["Allow", "Deny"]),
        "Action": st.lists(_PATTERN.map("s3:{}".format), min_size=1, max_size=3),
        "Resource": st.lists(_PATTERN, min_size=1, max_size=2),
    }
)


def _allows(read: Policy, action: str, resource: str) -> bool:
    """Whether IAM would allow it, asked one action and one resource at a time."""
    hits = [
        statement
        for statement in read.statements
        if any(matches(p, action) for p in statement.actions.patterns)
        and any(matches(p, resource) for p in statement.resources.patterns)
    ]
    return any(s.allows for s in hits) and all(s.allows for s in hits)


@given(st.lists(_STATEMENT, max_size=3), st.lists(_STATEMENT, max_size=3))
def test_whatever_is_newly_allowed_is_found(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    old, new = _read(*before), _read(*after)
    words = ["a", "b", "ab", "ba", "aab", "bbb"]
    gained = any(
        _allows(new, f"s3:{action}", resource) and not _allows(old, f"s3:{action}", resource)
        for action in words
        for resource in words
    )
    assert widened(old, new) or not gained


@given(_PATTERN, _PATTERN, st.text(alphabet="ab", min_size=1, max_size=5))
def test_patterns_that_share_a_text_overlap(one: str, other: str, text: str) -> None:
    if matches(one, text) and matches(other, text):
        assert overlap(one, other)


def test_what_a_new_role_gets_is_its_own_business_but_for_the_worst() -> None:
    role = change("aws_iam_role.r", None, {"name": "r", "assume_role_policy": policy()})
    own = {"role": "r", "policy": policy(READ)}
    assert found(role, change("aws_iam_role_policy.p", None, own)) == []
    everything = {"role": "r", "policy": policy({"Effect": "Allow", "Action": "*", "Resource": "*"})}
    assert found(role, change("aws_iam_role_policy.p", None, everything)) == [("iam-admin", "critical")]
    assert found(change("aws_iam_role_policy.p", None, own)) == [("iam-widened", "medium")]


@pytest.mark.parametrize(
    ("subject", "dangerous"),
    [
        ("repo:org/app:environment:prod", False),
        ("repo:org/app:*", False),
        ("repo:org/*", True),
        ("*", True),
        (None, True),
    ],
)
def test_a_new_role_for_workflows_names_its_repository(subject: str | None, dangerous: bool) -> None:
    host = "token.actions.githubusercontent.com"
    condition = {"StringEquals": {f"{host}:aud": "sts.amazonaws.com"}}
    if subject:
        condition["StringLike"] = {f"{host}:sub": subject}
    federated = {"Federated": f"arn:aws:iam::123456789012:oidc-provider/{host}"}
    trust = policy(
        {"Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity", "Principal": federated, "Condition": condition}
    )
    hits = found(change("aws_iam_role.r", None, {"name": "r", "assume_role_policy": trust}))
    assert hits == ([("trust-opened", "high")] if dangerous else [])


def test_a_boundary_is_not_exchanged_unseen() -> None:
    before = {"name": "r", "permissions_boundary": "arn:aws:iam::123456789012:policy/limit"}
    other = before | {"permissions_boundary": "arn:aws:iam::123456789012:policy/other"}
    assert found(change("aws_iam_role.r", before, {"name": "r"})) == [("iam-boundary-lost", "high")]
    assert found(change("aws_iam_role.r", before, other)) == [("iam-boundary-lost", "high")]
    unknown = change("aws_iam_role.r", before, {"name": "r"}, _after_unknown={"permissions_boundary": True})
    assert found(unknown) == [("iam-boundary-lost", "medium")]
    assert found(change("aws_iam_role.r", {"name": "r"}, before)) == []


def test_an_endpoint_for_everybody_in_the_network_is_not_public() -> None:
    open_policy = policy({"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"})
    assert found(change("aws_vpc_endpoint.e", None, {"policy": open_policy})) == []
    assert ("public-access", "critical") in found(change("aws_sqs_queue_policy.q", None, {"policy": open_policy}))


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", "{}", '{"Statement": null}', '{"Statement": [1, "x", null]}', '"*"']
)
def test_what_is_no_policy_breaks_nothing(text: str) -> None:
    found(change("aws_iam_role_policy.p", {"policy": text}, {"policy": policy(READ)}))
    found(change("aws_iam_role_policy.p", {"policy": policy(READ)}, {"policy": text}))
