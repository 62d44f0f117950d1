"""Extensions of other services, refusals of what is not there, and the log of calls."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.aws_user import IMAGE, ROLE, Aws
from sagefit.cloud.calls import kind_of, read_calls
from sagefit.cloud.paths import cloud_home

ALWAYS = {"Variable": "$", "IsPresent": True, "Next": "a"}


def policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def test_an_account_has_one_set_of_dashboards(aws: Aws) -> None:
    body = json.dumps({"widgets": []})
    aws.new_client("cloudwatch").put_dashboard(DashboardName="memory", DashboardBody=body)
    elsewhere = aws.new_client("cloudwatch", region_name="eu-central-1")
    assert [found["DashboardName"] for found in elsewhere.list_dashboards()["DashboardEntries"]] == ["memory"]
    assert elsewhere.get_dashboard(DashboardName="memory")["DashboardBody"] == body
    elsewhere.delete_dashboards(DashboardNames=["memory"])
    assert aws.client("cloudwatch").list_dashboards()["DashboardEntries"] == []


def machine(aws: Aws, name: str, states: dict[str, Any], start: str) -> str:
    definition = json.dumps({"StartAt": start, "States": states})
    created = aws.client("stepfunctions").create_state_machine(name=name, definition=definition, roleArn=ROLE)
    return str(created["stateMachineArn"])


def execute(aws: Aws, arn: str, name: str) -> dict[str, Any]:
    states = aws.client("stepfunctions")
    execution = states.start_execution(stateMachineArn=arn, name=name)["executionArn"]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found: dict[str, Any] = states.describe_execution(executionArn=execution)
        if found["status"] != "RUNNING":
            return found
        time.sleep(0.05)
    pytest.fail(f"{name} still runs")


def training_states(code: str, role: str = ROLE) -> dict[str, Any]:
    """Submit, wait, describe, judge: the shape of a job's state machine."""
    name = "States.Format('{}-0', $$.Execution.Name)"
    request = {
        "TrainingJobName.$": name,
        "RoleArn": role,
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3"],
            "ContainerArguments": ["/opt/ml/input/data/code/train.py"],
        },
        "InputDataConfig": [
            {"ChannelName": "code", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": code}}}
        ],
        "OutputDataConfig": {"S3OutputPath": "s3://bucket-artifacts/jobs"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
    }
    sdk = "arn:aws:states:::aws-sdk:sagemaker"
    judge = [
        {"Variable": "$.job.TrainingJobStatus", "StringEquals": "Completed", "Next": "done"},
        {"Variable": "$.job.TrainingJobStatus", "StringEquals": "InProgress", "Next": "wait"},
    ]
    return {
        "submit": {
            "Type": "Task",
            "Resource": f"{sdk}:createTrainingJob",
            "Parameters": request,
            "ResultPath": "$.created",
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "refused"}],
            "Next": "wait",
        },
        "wait": {"Type": "Wait", "Seconds": 1, "Next": "describe"},
        "describe": {
            "Type": "Task",
            "Resource": f"{sdk}:describeTrainingJob",
            "Parameters": {"TrainingJobName.$": name},
            "ResultPath": "$.job",
            "Next": "judge",
        },
        "judge": {"Type": "Choice", "Choices": judge, "Default": "failed"},
        "done": {"Type": "Succeed"},
        "failed": {"Type": "Fail", "Error": "failed", "CausePath": "$.job.FailureReason"},
        "refused": {"Type": "Fail", "ErrorPath": "$.error.Error", "CausePath": "$.error.Cause"},
    }


def test_a_state_machine_reads_an_execution_where_its_role_may(aws: Aws) -> None:
    """Names begin with a capital letter and times are text, as in every AWS SDK integration."""
    reads: dict[str, Any] = {
        "read": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sfn:describeExecution",
            "Parameters": {"ExecutionArn.$": "$$.Execution.Id"},
            "End": True,
        }
    }
    arn, iam = machine(aws, "reads", reads, "read"), aws.client("iam")
    refused = execute(aws, arn, "refused")
    assert (refused["status"], refused["error"]) == ("FAILED", "Sfn.SfnException")
    assert "not authorized to perform: states:DescribeExecution" in refused["cause"]
    allow = {"Effect": "Allow", "Action": "states:DescribeExecution", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    iam.put_role_policy(RoleName="execution", PolicyName="reads", PolicyDocument=document)
    try:
        answer = json.loads(execute(aws, arn, "allowed")["output"])
    finally:
        iam.delete_role_policy(RoleName="execution", PolicyName="reads")
    assert (answer["Name"], answer["Status"]) == ("allowed", "RUNNING")
    assert answer["StartDate"].endswith("Z")


def test_a_state_machine_runs_a_training_job(aws: Aws) -> None:
    aws.put("code/states/train.py", "print('hello')")
    arn = machine(aws, "trains", training_states("s3://bucket-data/code/states/"), "submit")
    done = execute(aws, arn, "run-1")
    assert done["status"] == "SUCCEEDED"
    assert json.loads(done["output"])["job"]["CreationTime"].endswith("Z")
    assert aws.lines("run-1-0") == ["hello"]

    states = aws.client("stepfunctions")
    execution = f"{arn.replace('stateMachine', 'execution')}:run-1"
    newest = states.get_execution_history(executionArn=execution, reverseOrder=True, maxResults=1)
    assert [event["type"] for event in newest["events"]] == ["ExecutionSucceeded"]
    pages = states.get_paginator("get_execution_history").paginate(
        executionArn=execution, PaginationConfig={"PageSize": 3}
    )
    assert pages.build_full_result()["events"][0]["type"] == "ExecutionStarted"

    aws.start("pass", TrainingJobName="taken-0")
    taken = execute(aws, arn, "taken")
    assert taken["error"] == "SageMaker.ResourceInUseException"
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        states.start_execution(stateMachineArn=arn, name="run-1")
    assert [item["name"] for item in states.list_executions(stateMachineArn=arn)["executions"]] == ["taken", "run-1"]


def test_the_text_of_a_refusal_reaches_the_state_machine(aws: Aws) -> None:
    aws.put("code/states/train.py", "")
    arn = machine(aws, "refused", training_states("s3://bucket-data/code/states/", ROLE + "-none"), "submit")
    refused = execute(aws, arn, "refused-1")
    assert refused["error"] == "SageMaker.SageMakerException"
    assert "Could not assume role" in refused["cause"]


def test_an_execution_can_be_stopped(aws: Aws) -> None:
    states = aws.client("stepfunctions")
    arn = machine(aws, "waits", {"wait": {"Type": "Wait", "Seconds": 300, "End": True}}, "wait")
    execution = states.start_execution(stateMachineArn=arn, name="long")["executionArn"]
    states.stop_execution(executionArn=execution, error="User", cause="enough")
    found = states.describe_execution(executionArn=execution)
    assert (found["status"], found["error"], found["cause"]) == ("ABORTED", "User", "enough")
    assert found["stopDate"] >= found["startDate"]


_ENDS_TWICE = """
import sys
from datetime import datetime, timezone
from sagefit_cloud.extensions import stepfunctions
stepfunctions.install()
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventHistoryContext
first, later = sys.argv[1:]
ends = {
    "set_ended": (),
    "set_stop": (datetime.now(timezone.utc), "enough", "User"),
    "set_error": ({"error": "States.Runtime", "cause": "no such state"},),
    "set_timed_out": (),
}
begun = EventHistoryContext.of_program_start()
execution = Environment(None, "STANDARD", {"Execution": {"Input": {}}, "StateMachine": {}}, begun, None, {})
frame = execution.open_frame()
execution.next_state_name = frame.next_state_name = "wait"
getattr(execution, first)(*ends[first])
for end in later.split(","):
    getattr(execution, end)(*ends[end])
    getattr(frame, end)(*ends[end])
print(*(type(one.program_state()).__name__ for one in (execution, frame)))
"""


@pytest.mark.parametrize(
    ("first", "end"),
    [
        ("set_ended", "ProgramEnded"),
        ("set_stop", "ProgramStopped"),
        ("set_error", "ProgramError"),
        ("set_timed_out", "ProgramTimedOut"),
    ],
)
def test_the_first_end_of_an_execution_counts(first: str, end: str) -> None:
    """A stop between two states lets the interpreter fail: the execution stays stopped, for its frames too."""
    command = [sys.executable, "-c", _ENDS_TWICE, first, "set_error,set_timed_out,set_ended"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [end, end]


@pytest.mark.parametrize(
    ("states", "codes"),
    [
        ({"a": {"Type": "Pass", "End": True}}, []),
        ({"a": {"Type": "Pass", "Next": "b"}}, ["MISSING_TRANSITION_TARGET", "MISSING_END_STATE"]),
        (
            {"a": {"Type": "Choice", "Choices": [ALWAYS], "Default": "z"}},
            ["MISSING_TRANSITION_TARGET", "MISSING_END_STATE"],
        ),
        ({"a": {"Type": "Dance"}}, ["SCHEMA_VALIDATION_FAILED"]),
    ],
)
def test_definitions_are_validated(aws: Aws, states: dict[str, Any], codes: list[str]) -> None:
    definition = json.dumps({"StartAt": "a", "States": states})
    answer = aws.client("stepfunctions").validate_state_machine_definition(definition=definition)
    assert answer["result"] == ("FAIL" if codes else "OK")
    assert [item["code"] for item in answer["diagnostics"]] == codes


def test_versions(aws: Aws) -> None:
    states = aws.client("stepfunctions")
    definition = json.dumps({"StartAt": "a", "States": {"a": {"Type": "Succeed"}}})
    created = states.create_state_machine(name="versioned", definition=definition, roleArn=ROLE, publish=True)
    found = states.list_state_machine_versions(stateMachineArn=created["stateMachineArn"])["stateMachineVersions"]
    assert [item["stateMachineVersionArn"] for item in found] == [created["stateMachineVersionArn"]]


def test_composite_alarms(aws: Aws) -> None:
    alarms = aws.client("cloudwatch")
    alarms.put_composite_alarm(AlarmName="both", AlarmRule='ALARM("a") AND ALARM("b")')
    found = alarms.describe_alarms(AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]
    assert [(item["AlarmName"], item["AlarmRule"]) for item in found] == [("both", 'ALARM("a") AND ALARM("b")')]


@pytest.mark.parametrize(
    ("service", "action", "parameters", "name"),
    [
        ("sagemaker", "create_hub", {"HubName": "a", "HubDescription": "b"}, "sagemaker:CreateHub"),
        (
            "iam",
            "simulate_custom_policy",
            {"PolicyInputList": ["{}"], "ActionNames": ["s3:Get"]},
            "iam:SimulateCustomPolicy",
        ),
        ("pricing", "get_products", {"ServiceCode": "AmazonSageMaker"}, "pricing:"),
    ],
)
def test_what_is_not_there_is_refused_at_once(
    aws: Aws, service: str, action: str, parameters: dict[str, Any], name: str
) -> None:
    with pytest.raises(ClientError) as caught:
        getattr(aws.client(service), action)(**parameters)
    answer = caught.value.response
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert answer["ResponseMetadata"]["RetryAttempts"] == 0
    assert answer["Error"]["Code"] == "UnsupportedOperation"
    assert name in answer["Error"]["Message"]


def test_calls_are_written_down(aws: Aws) -> None:
    before = len(list(read_calls()))
    aws.put("calls/x", "1")
    aws.get("s3://bucket-data/calls/x")
    with pytest.raises(ClientError):
        aws.describe("nobody")
    aws.client("sts").get_caller_identity()
    new = [(call.service, call.action, call.kind, call.status) for call in list(read_calls())[before:]]
    assert new == [
        ("s3", "PutObject", "write", 200),
        ("s3", "GetObject", "read", 200),
        ("sagemaker", "DescribeTrainingJob", "read", 400),
        ("sts", "GetCallerIdentity", "read", 200),
    ]


def test_calls_of_a_state_machine_are_written_down_and_sagemakers_own_are_not(aws: Aws) -> None:
    aws.put("code/states/train.py", "")
    arn = machine(aws, "called", training_states("s3://bucket-data/code/states/"), "submit")
    before = len(list(read_calls()))
    execute(aws, arn, "called-1")
    new = [(call.service, call.action) for call in list(read_calls())[before:]]
    assert ("sagemaker", "CreateTrainingJob") in new
    assert ("sagemaker", "DescribeTrainingJob") in new
    assert {service for service, _ in new} == {"stepfunctions", "sagemaker"}


@pytest.mark.parametrize(
    ("action", "method", "kind"),
    [
        ("DescribeTrainingJob", "POST", "read"),
        ("ValidateStateMachineDefinition", "POST", "read"),
        ("PutObject", "PUT", "write"),
        ("GET", "GET", "read"),
        ("CreateSchedule", "POST", "write"),
        ("AssumeRole", "POST", "read"),
    ],
)
def test_reads_and_writes(action: str, method: str, kind: str) -> None:
    assert kind_of(action, method) == kind


def test_the_server_listens_on_loopback_only(aws: Aws) -> None:
    import psutil

    from sagefit.cloud import control

    now = control.status()
    assert now is not None
    listening = [c for c in psutil.Process(now.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert [c.laddr.ip for c in listening] == ["127.0.0.1"]
    assert aws.endpoint == f"http://127.0.0.1:{listening[0].laddr.port}"


def test_a_machine_that_starts_at_its_own_end_comes_to_rest(aws: Aws) -> None:
    """On AWS it would not, and would cost money."""
    iam, events, states = aws.client("iam"), aws.client("events"), aws.client("stepfunctions")
    allow = {"Effect": "Allow", "Action": "states:StartExecution", "Resource": "*"}
    trust = {"Effect": "Allow", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="again", AssumeRolePolicyDocument=policy(trust))["Role"]["Arn"]
    iam.put_role_policy(RoleName="again", PolicyName="again", PolicyDocument=policy(allow))
    again = machine(aws, "again", {"a": {"Type": "Pass", "End": True}}, "a")
    pattern = {"source": ["aws.states"], "detail": {"stateMachineArn": [again], "status": ["SUCCEEDED"]}}
    events.put_rule(Name="again", EventPattern=json.dumps(pattern))
    transformer = {"InputPathsMap": {"name": "$.detail.name"}, "InputTemplate": '{"after": "<name>"}'}
    target = {"Id": "again", "Arn": again, "RoleArn": role, "InputTransformer": transformer}
    events.put_targets(Rule="again", Targets=[target])
    execute(aws, again, "first")
    log = cloud_home() / "cloud.log"
    said = f"{again} is not started: its runs start each other without end"
    deadline = time.monotonic() + 60
    while said not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(states.list_executions(stateMachineArn=again)["executions"]) == 1 + 16


def test_rules_hear_of_jobs_and_runs(aws: Aws) -> None:
    """A rule with a topic as target and a queue behind it: how a platform is told of failures."""
    events, sns, sqs = aws.client("events"), aws.client("sns"), aws.client("sqs")
    topic = sns.create_topic(Name="failures")["TopicArn"]
    queue = sqs.create_queue(QueueName="failures")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    for name, source, detail in (
        ("jobs", "aws.sagemaker", {"TrainingJobStatus": ["Failed"], "TrainingJobName": [{"prefix": "heard-"}]}),
        ("runs", "aws.states", {"status": ["FAILED"], "name": ["heard"]}),
    ):
        events.put_rule(Name=name, EventPattern=json.dumps({"source": [source], "detail": detail}))
        template = {
            "InputPathsMap": {"name": "$.detail.TrainingJobName", "why": "$.detail.FailureReason"},
            "InputTemplate": '"<name> failed"\n"<why>"',
        }
        transformer = {"InputTransformer": template} if name == "jobs" else {}
        events.put_targets(Rule=name, Targets=[{"Id": "topic", "Arn": topic, **transformer}])

    aws.put("code/heard/train.py", "raise SystemExit(7)")
    execute(aws, machine(aws, "heard", training_states("s3://bucket-data/code/heard/"), "submit"), "heard")
    messages: list[str] = []
    while len(messages) < 2:
        messages += [item["Body"] for item in sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]]
    assert messages[0] == '"heard-0 failed"\n"AlgorithmError: , exit code: 7"'
    run = json.loads(messages[1])
    assert (run["detail"]["status"], run["detail"]["error"]) == ("FAILED", "failed")


def test_a_request_that_is_tried_again_gets_the_answer_that_was_lost(aws: Aws) -> None:
    """AWS clients mark the tries of one request by its invocation id; another request is another matter."""
    ssm = aws.client("ssm")
    one = {"Name": "/lost/answer", "Value": "1", "Type": "String"}

    def put(invocation: str) -> int:
        def mark(request: Any, **_: Any) -> None:
            request.headers["amz-sdk-invocation-id"] = invocation

        ssm.meta.events.register("before-send.ssm.PutParameter", mark, unique_id="mark")
        try:
            return int(ssm.put_parameter(**one)["Version"])
        finally:
            ssm.meta.events.unregister("before-send.ssm.PutParameter", unique_id="mark")

    assert put("first") == put("first") == 1
    with pytest.raises(ssm.exceptions.ParameterAlreadyExists):
        put("second")
