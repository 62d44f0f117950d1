"""Schedules start what is due: at once for a rate, at its time for one time, and only what their role may start."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from cloud.aws_user import Aws

ACCOUNT = "123456789012"
PASS = {"StartAt": "done", "States": {"done": {"Type": "Pass", "End": True}}}
_UNIVERSAL = "arn:aws:scheduler:::aws-sdk:sfn:startExecution"


@pytest.fixture(scope="module")
def machine(aws: Aws) -> str:
    """A state machine, and a role that may start it beside one that may not."""
    trust = {"Effect": "Allow", "Principal": {"Service": "scheduler.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    made = aws.client("stepfunctions").create_state_machine(
        name="scheduled", definition=json.dumps(PASS), roleArn=f"arn:aws:iam::{ACCOUNT}:role/execution"
    )
    arn = str(made["stateMachineArn"])
    for name, actions in {"may-start": "states:StartExecution", "may-not": "states:DescribeExecution"}.items():
        aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)
        allow = {"Effect": "Allow", "Action": actions, "Resource": arn}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        aws.client("iam").put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy)
    return arn


def schedule(aws: Aws, machine: str, name: str, expression: str, role: str = "may-start", **more: Any) -> None:
    """A schedule that starts executions named after it."""
    asked = {"StateMachineArn": machine, "Name": f"{name}-<aws.scheduler.execution-id>", "Input": "{}"}
    aws.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression=expression,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": _UNIVERSAL, "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/{role}", "Input": json.dumps(asked)},
        **more,
    )


def started(aws: Aws, machine: str) -> list[str]:
    found = aws.client("stepfunctions").list_executions(stateMachineArn=machine)["executions"]
    return sorted(execution["name"].split("-")[0] for execution in found)


def wait(aws: Aws, machine: str, names: list[str]) -> None:
    deadline = time.monotonic() + 30
    while started(aws, machine) != names and time.monotonic() < deadline:
        time.sleep(0.1)
    assert started(aws, machine) == names


def test_what_is_due_is_started_where_the_role_may(aws: Aws, machine: str) -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=2)
    schedule(aws, machine, "refused", "rate(1 day)", "may-not")
    schedule(aws, machine, "disabled", "rate(1 day)", State="DISABLED")
    schedule(aws, machine, "tomorrow", "cron(0 3 1 1 ? 2199)")
    schedule(aws, machine, "once", f"at({soon:%Y-%m-%dT%H:%M:%S})", ActionAfterCompletion="DELETE")
    schedule(aws, machine, "rate", "rate(1 day)")
    wait(aws, machine, ["once", "rate"])
    left = {each["Name"] for each in aws.client("scheduler").list_schedules()["Schedules"]}
    assert {"refused", "disabled", "tomorrow", "rate"} <= left
    assert "once" not in left


def test_a_schedule_that_is_made_anew_begins_anew(aws: Aws, machine: str) -> None:
    before = started(aws, machine)
    aws.client("scheduler").delete_schedule(Name="rate")
    schedule(aws, machine, "rate", "rate(1 day)")
    wait(aws, machine, sorted([*before, "rate"]))


def test_a_change_of_its_target_alone_starts_nothing(aws: Aws, machine: str) -> None:
    before, scheduler = started(aws, machine), aws.client("scheduler")
    known = scheduler.get_schedule(Name="rate")
    kept = {key: known[key] for key in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
    scheduler.update_schedule(**kept, Description="changed")
    schedule(aws, machine, "next", "rate(1 day)")  # whatever the first would start comes before it
    wait(aws, machine, sorted([*before, "next"]))
