"""An embedded cloud in which every training job fails, with the planned roles, buckets and state machines in it."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

from cloud.aws_user import Aws
from proofs.machine import submits
from proofs.planned import Planned

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
    for platform, module in ROLES.items():
        document, trust = planned.document(platform), planned.trusts()[module]
        role = document["role_arn"].rsplit("/", 1)[1]
        aws.client("iam").create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(trust))
        for bucket in document["buckets"].values():
            aws.client("s3").create_bucket(Bucket=bucket)
        parameter = {"Name": f"/sagefit/{platform}", "Value": json.dumps(document), "Type": "String"}
        aws.client("ssm").put_parameter(**parameter)
    for job in ("at_limits", "quickstart"):
        for channel in submits(planned.definitions()[job])[0]["InputDataConfig"]:
            uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
            bucket, _, prefix = uri.removeprefix("s3://").partition("/")
            aws.put(f"{prefix}rows.csv", "1", bucket)


def create(aws: Aws, name: str, definition: dict[str, Any], wait: int = 0) -> str:
    """A state machine whose waits are this long; returns its ARN."""
    hasty = copy.deepcopy(definition)
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
    while (end := states.describe_execution(executionArn=execution))["status"] == "RUNNING":
        time.sleep(0.1)
    pages = states.get_paginator("get_execution_history").paginate(executionArn=execution)
    return end, [event for page in pages for event in page["events"]]
