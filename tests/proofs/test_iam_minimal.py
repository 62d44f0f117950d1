"""Policies are minimal: take anything away and a needed call fails, widen anything and a forbidden one passes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from proofs import calls, forbidden
from proofs.planned import Planned
from proofs.test_iam import OWN_JOB, PLATFORMS, ROLES, of_a_job
from sagefit.iam.evaluate import Call, allows
from sagefit.machine import graph

pytestmark = pytest.mark.xdist_group("plans")

Policies = list[dict[str, Any]]
# Says twice what ArnEquals on the same key says: it does not hold for an absent key either.
REDUNDANT = {"CreateTrainingJobsOfThisJob: without Null sagemaker:OutputKmsKey"}
# Jobs with a role of their own, by principal and platform.
OWN_ROLE = {
    "container of a job": {"minimal": "quickstart", "private": "steps"},
    "container in a network of its own": {"minimal": "own_network_minimal"},
    "container that is debugged": {"minimal": "debugged"},
}


def lists(planned: Planned, platform: str, principal: str) -> tuple[Policies, list[Call], list[Call]]:
    """A principal's policies, what it must be able to do, and what it must not."""
    (job, name), document = OWN_JOB[platform], planned.document(platform)
    definition = planned.definitions()[job]
    requests = graph.submits(definition)
    if principal == "engineer":
        return (
            planned.engineer(platform),
            calls.of_an_engineer(document, name),
            forbidden.to_an_engineer(document, name),
        )
    if principal in OWN_ROLE:
        own = OWN_ROLE[principal][platform]
        return planned.execution_policies(own), *of_a_job(planned, own)
    if principal == "container":
        must = [call for request in requests for call in calls.of_a_container(request, document, name)]
        return planned.role_policies()[ROLES[platform]], must, forbidden.to_a_container(document)
    must_not = forbidden.to_a_machine(document, name, requests[0])
    if platform == "private":
        must_not += forbidden.to_a_private_machine(document, name, requests[0])
    must = list(calls.of_a_machine(graph.calls(definition), document, name))
    return planned.role_policies()[job], must, must_not


def changes(policies: Policies) -> Iterator[tuple[str, Policies]]:
    """Every policy set with one action, resource or condition less, or all resources in one statement."""
    for index, policy in enumerate(policies):
        for place, statement in enumerate(policy["Statement"]):
            for what, changed in _changed(statement):
                spoiled = copy.deepcopy(policies)
                spoiled[index]["Statement"][place] = changed
                yield f"{statement['Sid']}: {what}", spoiled


def _changed(statement: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
    for action in actions:
        yield f"without {action}", statement | {"Action": [other for other in actions if other != action]}
    resources = statement["Resource"] if isinstance(statement["Resource"], list) else []
    for resource in resources:
        if ":training-job/" in resource:  # other lists name what other jobs need
            yield f"without {resource}", statement | {"Resource": [other for other in resources if other != resource]}
    if statement["Resource"] not in ("*", ["*"]):
        yield "on *", statement | {"Resource": "*"}
    for operator, keys in statement.get("Condition", {}).items():
        for key in keys:
            fewer = {name: value for name, value in keys.items() if name != key}
            yield f"without {operator} {key}", statement | {"Condition": statement["Condition"] | {operator: fewer}}


PRINCIPALS = [
    *((platform, principal) for platform in PLATFORMS for principal in ("machine", "container", "engineer")),
    *((platform, principal) for principal, jobs in OWN_ROLE.items() for platform in jobs),
]


@pytest.mark.parametrize(("platform", "principal"), PRINCIPALS)
def test_every_part_of_a_policy_matters(planned: Planned, platform: str, principal: str) -> None:
    policies, must, must_not = lists(planned, platform, principal)
    unnoticed = {
        change
        for change, spoiled in changes(policies)
        if all(allows(spoiled, call) for call in must) and not any(allows(spoiled, call) for call in must_not)
    }
    assert unnoticed <= REDUNDANT
