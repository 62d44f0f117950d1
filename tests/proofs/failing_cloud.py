"""An embedded cloud in which every training job fails, with the planned roles, buckets and state machines in it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from cloud.aws_user import Aws
from proofs.planned import Planned
from sagefit.machine.graph import calls, submits
from waiting import wait_until

# The longest reason there is (API), of a class that leads from each attempt to the next.
REASON = "CapacityError: Unable to provision requested ML compute capacity. ".ljust(1024, "x")
ROLES = {"private": "private.module.role", "minimal": "minimal.module.platform.module.role"}
STATES_ROLE = "arn:aws:iam::123456789012:role/states"


def write_faults(path: Path) -> Path:
    """The faults file of this cloud."""
    path.write_text(json.dumps([{"outcome": {"status": "Failed", "failure_reason": REASON}}]), encoding="utf-8")
    return path


def prepare(aws: Aws, planned: Planned) -> None:
    """What the service asks for before it takes a job: the execution roles, the buckets, and data in every channel."""
    aws.client("s3").create_bucket(Bucket="my-data")
    trust = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    policy: dict[str, Any] = {"Version": "2012-10-17", "Statement": [everything]}
    _make_role(aws, STATES_ROLE, {"Version": "2012-10-17", "Statement": [trust]}, [policy])
    policies = planned.role_policies()
    for platform, module in ROLES.items():
        document = planned.document(platform)
        _make_role(aws, document["role_arn"], planned.trusts()[module], policies[module])
        for bucket in document["buckets"].values():
            aws.client("s3").create_bucket(Bucket=bucket)
        parameter = {"Name": f"/sagefit/{platform}", "Value": json.dumps(document), "Type": "String"}
        aws.client("ssm").put_parameter(**parameter)
    for role, trust in planned.trusts().items():
        job, _, own = role.partition(":")
        if own:
            _make_role(aws, _role_of(planned.definitions()[job]), trust, planned.execution_policies(job))
    for job in ("at_limits", "quickstart"):
        for channel in submits(planned.definitions()[job])[0]["InputDataConfig"]:
            uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
            bucket, _, prefix = uri.removeprefix("s3://").partition("/")
            aws.put(f"{prefix}rows.csv", "1", bucket)


def _role_of(definition: dict[str, Any]) -> str:
    requests = (request.get("TrainingJobDefinition", request) for _, request in calls(definition))
    return next(str(request["RoleArn"]) for request in requests if "RoleArn" in request)


def _make_role(aws: Aws, arn: str, trust: dict[str, Any], policies: list[dict[str, Any]]) -> None:
    path, _, name = arn.split(":role", 1)[1].rpartition("/")
    iam = aws.client("iam")
    iam.create_role(RoleName=name, Path=f"{path}/", AssumeRolePolicyDocument=json.dumps(trust))
    for index, policy in enumerate(policies):
        iam.put_role_policy(RoleName=name, PolicyName=str(index), PolicyDocument=json.dumps(policy))


def create(aws: Aws, name: str, definition: dict[str, Any], wait: int = 0) -> str:
    """A state machine whose waits are this long, for runs of any job; returns its ARN."""
    hasty = copy.deepcopy(definition)
    for rule in hasty["States"]["named"]["Choices"]:
        rule["StringMatches"] = "*-*-*"
    for state in hasty["States"].values():
        if state["Type"] == "Wait":
            state["Seconds"] = wait
    states = aws.client("stepfunctions")
    made = states.create_state_machine(name=name, definition=json.dumps(hasty), roleArn=STATES_ROLE)
    return str(made["stateMachineArn"])


def start(aws: Aws, job: str, definition: dict[str, Any]) -> str:
    """Start a run that does not wait; returns its ARN."""
    machine = create(aws, job, definition)
    states = aws.client("stepfunctions")
    return str(states.start_execution(stateMachineArn=machine, name=f"{job}-261121-120000")["executionArn"])


def ended(aws: Aws, execution: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How a run ended, and its history."""
    states = aws.client("stepfunctions")

    def end() -> dict[str, Any] | None:
        found: dict[str, Any] = states.describe_execution(executionArn=execution)
        return None if found["status"] == "RUNNING" else found

    ended = wait_until(end, 300)
    assert ended
    pages = states.get_paginator("get_execution_history").paginate(executionArn=execution)
    return ended, [event for page in pages for event in page["events"]]
