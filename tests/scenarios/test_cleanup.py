"""What becomes of the jobs of a run that ends without them: the platform's own state machine stops them."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

import pytest

from scenarios.conftest import Cloud
from scenarios.hard_runs import hanging
from waiting import wait_until

pytestmark = pytest.mark.xdist_group("scenarios")

STATES = "arn:aws:states:us-east-1:123456789012"
CLEANUP = f"{STATES}:stateMachine:sagefit-dev_cleanup"
LOOKS = 5


def given(job: str, run: str, status: str) -> dict[str, str]:
    """What the event rule gives of a run that ended."""
    return {"run": run, "status": status, "execution": f"{STATES}:execution:sagefit-dev-{job}:{run}"}


def cleanups_of(cloud: Cloud, run: str) -> list[dict[str, Any]]:
    """The executions of the state machine that were for a run, with what they were given."""
    states = cloud.client("stepfunctions")
    pages = states.get_paginator("list_executions").paginate(stateMachineArn=CLEANUP)
    arns = [each["executionArn"] for page in pages for each in page["executions"]]
    found = [states.describe_execution(executionArn=arn) for arn in arns]
    return [each for each in found if json.loads(each["input"])["run"] == run]


def request_of(cloud: Cloud, run: str) -> dict[str, Any]:
    """What a training job of this platform asks for, without its name: that of a run that is started for it."""
    cloud.start("pool", run)
    assert cloud.ended("pool", run)["status"] == "SUCCEEDED"
    done = cloud.client("sagemaker").describe_training_job(TrainingJobName=f"{run}-0")
    fields = (
        "AlgorithmSpecification",
        "RoleArn",
        "InputDataConfig",
        "OutputDataConfig",
        "ResourceConfig",
        "StoppingCondition",
    )
    return {field: done[field] for field in fields} | {"Tags": [{"Key": "sagefit:platform", "Value": "dev"}]}


def asked_by(cloud: Cloud, cleanup: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The calls of an execution in their order, each with its parameters."""
    pages = cloud.client("stepfunctions").get_paginator("get_execution_history")
    history = pages.paginate(executionArn=cleanup["executionArn"]).build_full_result()["events"]
    calls = [each["taskScheduledEventDetails"] for each in history if "taskScheduledEventDetails" in each]
    return [(call["resource"], json.loads(call["parameters"])) for call in calls]


def test_a_run_that_is_stopped_in_the_console_stops_its_training_job(hard: Cloud) -> None:
    run = hanging(hard, 5)
    hard.client("stepfunctions").stop_execution(executionArn=f"{STATES}:execution:sagefit-dev-hard:{run}")
    sagemaker = hard.client("sagemaker")
    wait_until(lambda: sagemaker.describe_training_job(TrainingJobName=f"{run}-0")["TrainingJobStatus"] == "Stopped")
    (cleanup,) = wait_until(lambda: [each for each in cleanups_of(hard, run) if each["status"] != "RUNNING"])
    assert (cleanup["status"], json.loads(cleanup["input"])) == ("SUCCEEDED", given("hard", run, "ABORTED"))
    stopped = [asked for call, asked in asked_by(hard, cleanup) if call == "stopTrainingJob"]
    assert {"TrainingJobName": f"{run}-0"} in stopped
    assert {each["TrainingJobName"] for each in stopped} == {f"{run}-0"}


def test_a_run_is_stopped_among_many_jobs_of_others(hard: Cloud) -> None:
    """Those that are younger fill the first page; those that are older than the run are not looked at."""
    sagemaker, states = hard.client("sagemaker"), hard.client("stepfunctions")
    request = request_of(hard, "pool-000300-000004")

    def crowd(*numbers: int) -> None:
        for number in range(*numbers):
            sagemaker.create_training_job(**request | {"TrainingJobName": f"crowd-{number}"})

    crowd(150)
    run = hanging(hard, 8)
    crowd(150, 260)
    execution = f"{STATES}:execution:sagefit-dev-hard:{run}"
    began = states.describe_execution(executionArn=execution)["startDate"]
    states.stop_execution(executionArn=execution)
    wait_until(lambda: sagemaker.describe_training_job(TrainingJobName=f"{run}-0")["TrainingJobStatus"] == "Stopped")
    (cleanup,) = wait_until(lambda: [each for each in cleanups_of(hard, run) if each["status"] != "RUNNING"])
    assert cleanup["status"] == "SUCCEEDED"
    calls = asked_by(hard, cleanup)
    listed = [asked for call, asked in calls if call == "listTrainingJobs" and "StatusEquals" in asked]
    assert {datetime.fromisoformat(asked["CreationTimeAfter"].replace("Z", "+00:00")) for asked in listed} == {began}
    since = sagemaker.get_paginator("list_training_jobs").paginate(CreationTimeAfter=began)
    pages = math.ceil(len(since.build_full_result()["TrainingJobSummaries"]) / 100)
    assert pages > 1
    assert len([asked for asked in listed if "NextToken" not in asked]) == LOOKS
    assert len(listed) == LOOKS * pages


def test_where_nobody_knows_when_a_run_began_all_jobs_are_looked_at(cloud: Cloud) -> None:
    """The job was destroyed meanwhile, and its executions with it."""
    states, run = cloud.client("stepfunctions"), "gone-000300-000005"
    told = json.dumps(given("gone", run, "ABORTED"))
    arn = states.start_execution(stateMachineArn=CLEANUP, input=told)["executionArn"]
    wait_until(lambda: states.describe_execution(executionArn=arn)["status"] == "SUCCEEDED", seconds=120)
    lists = [asked for call, asked in asked_by(cloud, {"executionArn": arn}) if call.startswith("list")]
    assert {asked["CreationTimeAfter"] for asked in lists} == {"1970-01-01T00:00:00Z"}


def test_a_run_whose_time_is_over_stops_its_training_job(cloud: Cloud) -> None:
    sagemaker, states, run = cloud.client("sagemaker"), cloud.client("stepfunctions"), "late-000300-000003"
    request = request_of(cloud, "pool-000300-000003")
    hangs = {"ContainerEntrypoint": ["python3", "-c", "import time; time.sleep(600)"], "ContainerArguments": ["-"]}
    algorithm = request["AlgorithmSpecification"] | hangs
    hanging_job = request | {"TrainingJobName": f"{run}-0", "AlgorithmSpecification": algorithm}
    trust = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = cloud.client("iam").create_role(RoleName="late", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    wait = {"Type": "Wait", "Seconds": 600, "End": True}
    late = states.create_state_machine(
        name="sagefit-dev-late",
        definition=json.dumps({"StartAt": "wait", "TimeoutSeconds": 2, "States": {"wait": wait}}),
        roleArn=role,
    )["stateMachineArn"]
    try:
        cloud.start("late", run)
        sagemaker.create_training_job(**hanging_job)
        assert cloud.ended("late", run)["status"] == "TIMED_OUT"
        (cleanup,) = wait_until(lambda: [each for each in cleanups_of(cloud, run) if each["status"] != "RUNNING"])
    finally:
        states.delete_state_machine(stateMachineArn=late)
    assert (cleanup["status"], json.loads(cleanup["input"])) == ("SUCCEEDED", given("late", run, "TIMED_OUT"))
    wait_until(lambda: sagemaker.describe_training_job(TrainingJobName=f"{run}-0")["TrainingJobStatus"] == "Stopped")


def test_its_instances_are_given_back_and_those_of_others_are_kept(cloud: Cloud) -> None:
    sagemaker, run = cloud.client("sagemaker"), "pool-000300-000001"
    request = request_of(cloud, run)
    for size, job in enumerate((f"{run}-1", f"other-{run}-1"), 41):  # a size of its own, so none takes the other's
        resources = request["ResourceConfig"] | {"VolumeSizeInGB": size, "KeepAlivePeriodInSeconds": 1800}
        sagemaker.create_training_job(**request | {"TrainingJobName": job, "ResourceConfig": resources})

    def pool(job: str) -> str:
        return str(sagemaker.describe_training_job(TrainingJobName=job)["WarmPoolStatus"]["Status"])

    wait_until(lambda: (pool(f"{run}-1"), pool(f"other-{run}-1")) == ("Available", "Available"))
    execution = cloud.client("stepfunctions").start_execution(
        stateMachineArn=CLEANUP, input=json.dumps(given("pool", run, "ABORTED"))
    )["executionArn"]
    states = cloud.client("stepfunctions")
    wait_until(lambda: states.describe_execution(executionArn=execution)["status"] == "SUCCEEDED")
    assert (pool(f"{run}-1"), pool(f"other-{run}-1")) == ("Terminated", "Available")


def test_a_run_that_failed_is_looked_at_once_and_keeps_its_instances(cloud: Cloud) -> None:
    run = "bare-000201-000007"
    cloud.start("bare", run)
    assert cloud.ended("bare", run)["status"] == "FAILED"
    (cleanup,) = wait_until(lambda: [each for each in cleanups_of(cloud, run) if each["status"] != "RUNNING"])
    history = cloud.client("stepfunctions").get_execution_history(executionArn=cleanup["executionArn"], maxResults=1000)
    entered = [
        each["stateEnteredEventDetails"]["name"] for each in history["events"] if "stateEnteredEventDetails" in each
    ]
    assert (cleanup["status"], entered.count("look"), "list pools" in entered) == ("SUCCEEDED", 1, False)


def test_jobs_that_it_may_not_stop_are_its_failure(hard: Cloud) -> None:
    """A policy of the company forbids it: the execution fails, and an event rule tells of it."""
    run, iam = hanging(hard, 6), hard.client("iam")
    deny = {"Effect": "Deny", "Action": "sagemaker:StopTrainingJob", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [deny]})
    iam.put_role_policy(RoleName="sagefit-dev_cleanup", PolicyName="company", PolicyDocument=document)
    try:
        hard.client("stepfunctions").stop_execution(executionArn=f"{STATES}:execution:sagefit-dev-hard:{run}")
        (cleanup,) = wait_until(lambda: [each for each in cleanups_of(hard, run) if each["status"] != "RUNNING"])
    finally:
        iam.delete_role_policy(RoleName="sagefit-dev_cleanup", PolicyName="company")
    assert (cleanup["status"], cleanup["error"]) == ("FAILED", "Sagefit.StillRunning")
    assert f'["{run}-0"]' in cleanup["cause"]
    hard.client("sagemaker").stop_training_job(TrainingJobName=f"{run}-0")
