"""Schedules start what is due: at once for a rate, at its time for one time, and only what their role may start."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cli_runner import Sagefit
from cloud.aws_user import Aws
from waiting import wait_until

# They share a state machine and its roles, which are made once.
pytestmark = pytest.mark.xdist_group("schedules")

ACCOUNT = "123456789012"
PASS = {"StartAt": "done", "States": {"done": {"Type": "Pass", "End": True}}}
_UNIVERSAL = "arn:aws:scheduler:::aws-sdk:sfn:startExecution"


def made(aws: Aws) -> str:
    """The ARN of a new state machine, with roles that may start it and one that may not."""
    trust = {"Effect": "Allow", "Principal": {"Service": "scheduler.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    answer = aws.client("stepfunctions").create_state_machine(
        name="scheduled", definition=json.dumps(PASS), roleArn=f"arn:aws:iam::{ACCOUNT}:role/execution"
    )
    arn = str(answer["stateMachineArn"])
    start = {"Effect": "Allow", "Action": "states:StartExecution", "Resource": arn}
    roles = {
        "may-start": [start],
        "may-not": [start | {"Action": "states:DescribeExecution"}],
        "may-decrypt": [start, {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": "*"}],
    }
    for name, statements in roles.items():
        aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        aws.client("iam").put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy)
    return arn


@pytest.fixture(scope="module")
def machine(aws: Aws) -> str:
    return made(aws)


@pytest.fixture
def hourly(tmp_path: Path) -> Iterator[Aws]:
    """A cloud of its own, in which an hour passes for schedules in each second."""
    sagefit = Sagefit(tmp_path / "home", CLOUD="local")
    sagefit("cloud", "up", "--clock", "3600")
    try:
        assert "clock: 3600," in sagefit("cloud", "status").out
        found = Aws(sagefit.aws_environment())
        found.prepare()
        yield found
        found.close()
    finally:
        sagefit("cloud", "down")


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


def started(aws: Aws, machine: str, name: str) -> int:
    """How many executions a schedule has started."""
    found = aws.client("stepfunctions").list_executions(stateMachineArn=machine)["executions"]
    return sum(execution["name"].startswith(f"{name}-") for execution in found)


def names(aws: Aws) -> set[str]:
    """The schedules that there are."""
    return {each["Name"] for each in aws.client("scheduler").list_schedules()["Schedules"]}


def wait(aws: Aws, machine: str, name: str, times: int = 1) -> None:
    """Wait until a schedule has started so many."""
    deadline = time.monotonic() + 30
    while started(aws, machine, name) < times and time.monotonic() < deadline:
        time.sleep(0.1)
    assert started(aws, machine, name) == times


def test_what_is_due_is_started_where_the_role_may(aws: Aws, machine: str) -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=6)  # after the cloud has seen it for the first time
    schedule(aws, machine, "once", f"at({soon:%Y-%m-%dT%H:%M:%S})", ActionAfterCompletion="DELETE")
    schedule(aws, machine, "refused", "rate(1 day)", "may-not")
    schedule(aws, machine, "disabled", "rate(1 day)", State="DISABLED")
    schedule(aws, machine, "later", "cron(0 3 1 1 ? 2199)")
    schedule(aws, machine, "rate", "rate(1 day)")
    wait(aws, machine, "rate")
    wait(aws, machine, "once")
    assert [started(aws, machine, name) for name in ("refused", "disabled", "later")] == [0, 0, 0]
    assert {"refused", "disabled", "later", "rate"} <= names(aws)
    deadline = time.monotonic() + 30  # it is taken away after its execution was started
    while "once" in names(aws) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "once" not in names(aws)


def test_a_schedule_that_is_made_anew_begins_anew(aws: Aws, machine: str) -> None:
    schedule(aws, machine, "anew", "rate(1 day)")
    wait(aws, machine, "anew")
    aws.client("scheduler").delete_schedule(Name="anew")
    schedule(aws, machine, "anew", "rate(1 day)")
    wait(aws, machine, "anew", 2)


def test_a_change_of_its_target_alone_starts_nothing(aws: Aws, machine: str) -> None:
    scheduler = aws.client("scheduler")
    schedule(aws, machine, "changed", "rate(1 day)")
    wait(aws, machine, "changed")
    known = scheduler.get_schedule(Name="changed")
    kept = {key: known[key] for key in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
    scheduler.update_schedule(**kept, Description="another")
    schedule(aws, machine, "next", "rate(1 day)")  # whatever the change would start comes before it
    wait(aws, machine, "next")
    assert started(aws, machine, "changed") == 1


def test_a_schedule_with_a_key_is_started_where_its_role_may_decrypt(aws: Aws, machine: str) -> None:
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    schedule(aws, machine, "closed", "rate(1 day)", "may-start", KmsKeyArn=key)
    schedule(aws, machine, "open", "rate(1 day)", "may-decrypt", KmsKeyArn=key)
    wait(aws, machine, "open")
    assert started(aws, machine, "closed") == 0


def test_a_clock_that_is_fast_makes_hours_short(hourly: Aws) -> None:
    machine, expressions = made(hourly), {"rate": "rate(1 hour)", "cron": "cron(0 * * * ? *)"}
    for name, expression in expressions.items():
        schedule(hourly, machine, name, expression)
    wait_until(lambda: min(started(hourly, machine, name) for name in expressions) >= 2)
