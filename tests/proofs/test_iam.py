"""The three principals of a platform can do all they must, and none of what they must not.

Policies are those that Terraform plans; calls are derived from the planned requests, the state machine's tasks, and the
commands as they were recorded (``test_iam_calls.py``).
"""

from __future__ import annotations

from typing import Any

import pytest

from proofs import calls, forbidden
from proofs.job_at_limits import NAME
from proofs.linter import findings
from proofs.planned import JOBS, OWN_NETWORK, Planned
from sagefit.doctor.permissions import rows
from sagefit.iam.evaluate import Call, allows
from sagefit.machine import graph

pytestmark = pytest.mark.xdist_group("plans")

Policies = list[dict[str, Any]]
ROLES = {"minimal": "minimal.module.platform.module.role", "private": "private.module.role"}
# A job of each platform: module, name.
OWN_JOB = {"minimal": ("quickstart", "quickstart"), "private": ("at_limits", NAME)}
# Jobs that are not of the minimal platform, or not named as their module.
ELSEWHERE = {
    "at_limits": ("private", NAME),
    "steps": ("private", "steps"),
    "example.module.job": ("example", "digits"),
    **{module: (platform, "own-network") for module, platform in OWN_NETWORK.items()},
}
# Modules of jobs with a role of their own.
OWN_ROLE = ["quickstart", "steps", "debugged", *OWN_NETWORK]
PLATFORMS = list(ROLES)


def wrong(policies: Policies, listed: list[Call], *, allowed: bool) -> list[str]:
    """The calls whose answer is not the one that is wanted."""
    return [str(call) for call in listed if allows(policies, call) != allowed]


def of_a_job(planned: Planned, job: str) -> tuple[list[Call], list[Call]]:
    """What the containers of a job with a role of its own must be able to do, and what they must not."""
    platform, name = ELSEWHERE.get(job, ("minimal", job))
    document, definition = planned.document(platform), planned.definitions()[job]
    must = [call for asked in graph.submits(definition) for call in calls.of_a_container(asked, document, name)]
    for action, request in graph.calls(definition):
        if action == "createProcessingJob":
            must += calls.of_a_step(request, document, name)
    must_not = forbidden.to_a_container_of_a_job(document, name)
    must_not += forbidden.to_a_container_of_a_request(graph.submits(definition)[0], document)
    if not any(calls.is_debugged(request) for request in graph.submits(definition)):
        must_not += calls.of_a_debugger()
    return must, must_not


def test_policies_are_valid(planned: Planned) -> None:
    """Every action exists and every resource is of a kind that the action takes (cfn-lint)."""
    policies = [policy for own in planned.role_policies().values() for policy in own]
    policies += [policy for job in OWN_ROLE for policy in planned.execution_policies(job)]
    assert findings(policies=policies + planned.engineer("minimal") + planned.engineer("private")) == []


def test_linter_finds_an_action_that_does_not_exist(planned: Planned) -> None:
    policy = planned.engineer("minimal")[0]
    policy["Statement"].append({"Effect": "Allow", "Action": "states:BeginExecution", "Resource": "*"})
    assert any(finding.startswith("W3037") for finding in findings(policies=[policy]))


@pytest.mark.parametrize("job", JOBS)
def test_machine_can_run_its_job(planned: Planned, job: str) -> None:
    platform, name = ELSEWHERE.get(job, ("minimal", job))
    must = list(calls.of_a_machine(graph.calls(planned.definitions()[job]), planned.document(platform), name))
    assert wrong(planned.role_policies()[job], must, allowed=True) == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_machine_can_do_nothing_else(planned: Planned, platform: str) -> None:
    job, name = OWN_JOB[platform]
    document, request = planned.document(platform), graph.submits(planned.definitions()[job])[0]
    must_not = forbidden.to_a_machine(document, name, request)
    if platform == "private":
        must_not += forbidden.to_a_private_machine(document, name, request)
    assert len(must_not) >= 25
    assert wrong(planned.role_policies()[job], must_not, allowed=False) == []


def test_a_machine_that_tunes_can_do_nothing_else(planned: Planned) -> None:
    must_not = forbidden.to_a_tuning_machine(planned.document("minimal"), "tuning")
    assert wrong(planned.role_policies()["tuning"], must_not, allowed=False) == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_container_can_train(planned: Planned, platform: str) -> None:
    job, name = OWN_JOB[platform]
    for request in graph.submits(planned.definitions()[job]):
        must = list(calls.of_a_container(request, planned.document(platform), name))
        assert wrong(planned.role_policies()[ROLES[platform]], must, allowed=True) == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_container_can_do_nothing_else(planned: Planned, platform: str) -> None:
    must_not = forbidden.to_a_container(planned.document(platform))
    assert len(must_not) >= 25
    assert wrong(planned.role_policies()[ROLES[platform]], must_not, allowed=False) == []


@pytest.mark.parametrize("job", OWN_ROLE)
def test_container_of_a_job_can_do_what_the_job_does(planned: Planned, job: str) -> None:
    must, _ = of_a_job(planned, job)
    assert wrong(planned.execution_policies(job), must, allowed=True) == []


@pytest.mark.parametrize("job", OWN_ROLE)
def test_container_of_a_job_reaches_no_other_job(planned: Planned, job: str) -> None:
    _, must_not = of_a_job(planned, job)
    assert len(must_not) >= 25
    assert wrong(planned.execution_policies(job), must_not, allowed=False) == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_engineer_can_run_jobs(planned: Planned, platform: str) -> None:
    must = calls.of_an_engineer(planned.document(platform), OWN_JOB[platform][1])
    assert wrong(planned.engineer(platform), must, allowed=True) == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_engineer_can_make_the_calls_that_doctor_asks_for(planned: Planned, platform: str) -> None:
    document, job = planned.document(platform), OWN_JOB[platform][1]
    names = {key: document[key] for key in ("partition", "region")} | {"account": document["account_id"], "job": job}
    names |= {"prefix": f"sagefit-{document['name']}", "suffix": document.get("global_suffix", "")}
    must = [
        Call(action, arn.format_map(names))
        for row in rows()
        if row.to == "run"
        for action in row.actions
        for arn in row.on
    ]
    assert len(must) >= 7
    assert wrong(planned.engineer(platform), must, allowed=True) == []


@pytest.mark.parametrize("platform", PLATFORMS)
def test_engineer_can_do_nothing_else(planned: Planned, platform: str) -> None:
    must_not = forbidden.to_an_engineer(planned.document(platform), OWN_JOB[platform][1])
    assert len(must_not) >= 25
    assert wrong(planned.engineer(platform), must_not, allowed=False) == []


def test_no_policy_holds_a_wildcard_action(planned: Planned) -> None:
    policies = [policy for own in planned.role_policies().values() for policy in own]
    actions = {
        action
        for policy in policies + planned.engineer("minimal") + planned.engineer("private")
        for statement in policy["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    assert [action for action in actions if "*" in action] == []


TRUSTED = {
    "minimal.module.platform.module.role": ("sagemaker.amazonaws.com", "sagemaker:us-east-1:{}:training-job/x"),
    "quickstart": ("states.amazonaws.com", "states:us-east-1:{}:stateMachine:sagefit-minimal-quickstart"),
    "quickstart:execution": ("sagemaker.amazonaws.com", "sagemaker:us-east-1:{}:training-job/x"),
}


@pytest.mark.parametrize("role", TRUSTED)
def test_only_the_own_service_for_the_own_account_assumes_a_role(planned: Planned, role: str) -> None:
    (service, source), trust = TRUSTED[role], planned.trusts()[role]
    assert [statement["Principal"] for statement in trust["Statement"]] == [{"Service": service}]
    policy = {"Statement": [statement | {"Resource": "*"} for statement in trust["Statement"]]}
    for account, allowed in (("123456789012", True), ("210987654321", False)):
        context = {"aws:SourceAccount": account, "aws:SourceArn": "arn:aws:" + source.format(account)}
        assert allows([policy], Call("sts:AssumeRole", "*", context)) == allowed
    other = {
        "aws:SourceAccount": "123456789012",
        "aws:SourceArn": "arn:aws:states:us-east-1:123456789012:stateMachine:x",
    }
    assert not allows([policy], Call("sts:AssumeRole", "*", other))


def test_listed_calls_exist(planned: Planned) -> None:
    """A misspelt action would be forbidden to everybody."""
    document, request = planned.document("private"), graph.submits(planned.definitions()["at_limits"])[0]
    listed = [
        *forbidden.to_a_machine(document, NAME, request),
        *forbidden.to_a_container_of_a_job(document, NAME),
        *forbidden.to_an_engineer(document, NAME),
        *calls.of_an_engineer(document, NAME),
        *calls.of_a_container(request, document, NAME),
        *calls.of_a_debugger(),
        *calls.of_a_machine(graph.calls(planned.definitions()["at_limits"]), document, NAME),
    ]
    statement = {"Effect": "Allow", "Action": sorted({call.action for call in listed}), "Resource": "*"}
    found = findings(policies=[{"Version": "2012-10-17", "Statement": [statement]}])
    assert [finding for finding in found if finding.startswith("W3037")] == []
