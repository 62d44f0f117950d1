"""The state machine's role is enforced: what its policy leaves out is refused as AWS refuses it, and ends the run."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from scenarios.conftest import Cloud, record

pytestmark = pytest.mark.xdist_group("scenarios")

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-bare"
# What is taken from the role, the run's name, and the call that is refused then.
CASES = {
    "nothing": ((), "bare-000300-000000", ""),
    "create": (("sagemaker:CreateTrainingJob",), "bare-000300-000000", "sagemaker:CreateTrainingJob"),
    "pass role": (("iam:PassRole",), "bare-000300-000000", "iam:PassRole"),
    "tags": (("sagemaker:AddTags",), "bare-000300-000000", "sagemaker:AddTags"),
    "another job": ((), "bare-latest-000300-000000", "sagemaker:CreateTrainingJob"),
    "no date": ((), "bare-by-hand", "sagemaker:CreateTrainingJob"),
}


def without(policy: dict[str, Any], actions: tuple[str, ...]) -> dict[str, Any]:
    """A copy of ``policy`` that does not allow ``actions``."""
    less = copy.deepcopy(policy)
    less["Statement"] = [statement for statement in less["Statement"] if not set(actions) & set(statement["Action"])]
    return less


@pytest.fixture(scope="module")
def machines(cloud: Cloud) -> Cloud:
    """For each case a state machine like that of the job ``bare``, with a role of its own, and a run of it."""
    states, iam = cloud.client("stepfunctions"), cloud.client("iam")
    original = states.describe_state_machine(stateMachineArn=MACHINE)
    name = original["roleArn"].rpartition("/")[2]
    trust = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
    policy = iam.get_role_policy(RoleName=name, PolicyName="run-training-jobs")["PolicyDocument"]
    for number, (actions, run, _) in enumerate(CASES.values()):
        own = json.dumps(trust).replace(MACHINE, f"{MACHINE.rpartition(':')[0]}:sagefit-dev-less-{number}")
        role = iam.create_role(RoleName=f"less-{number}", AssumeRolePolicyDocument=own)["Role"]["Arn"]
        document = json.dumps(without(policy, actions))
        iam.put_role_policy(RoleName=f"less-{number}", PolicyName="run-training-jobs", PolicyDocument=document)
        states.create_state_machine(name=f"sagefit-dev-less-{number}", definition=original["definition"], roleArn=role)
        cloud.start(f"less-{number}", run)
    return cloud


@pytest.mark.parametrize("number", range(len(CASES)), ids=CASES)
def test_a_run_ends_where_its_role_may_not(machines: Cloud, number: int) -> None:
    _, name, refused = list(CASES.values())[number]
    execution = machines.ended(f"less-{number}", name)
    put_out = record(execution)
    if not refused:
        assert (execution["status"], put_out["attempt"]) == ("SUCCEEDED", "first")
        return
    assert execution["error"] == "Sagefit.permission"
    note = put_out["attempts"]["0"]
    assert f"is not authorized to perform: {refused} on resource: arn:aws:" in note["evidence"]
    assert f"role/less-{number}/" in note["evidence"]
