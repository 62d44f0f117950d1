"""Every rule of the ledger is kept: by the embedded cloud in AWS's words, and by the modules before it comes to that.

The other way round, every rule that the embedded cloud has is in the ledger, with its source.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import yaml_tables
from aws.bases import BASES, OF_A_JOB, fresh
from aws.ledger import LEDGER, Asked, rows
from cloud.aws_user import Aws
from job.test_two_rule_books import TERRAFORM_ALONE
from sagefit.paths import ROOT
from sagefit_cloud.rules import RULES, name_of
from terraform.runs import test_files as files_of_runs

pytestmark = pytest.mark.xdist_group("ledger")
ROWS = {row.rule: row for row in rows()}
_AS_IT_IS = Config(parameter_validation=False, retries={"total_max_attempts": 1})
_clients: dict[str, Any] = {}


def send(aws: Aws, operation: str, request: dict[str, Any]) -> None:
    """Send a request that no client has looked at."""
    service, _, name = operation.partition(":")
    if service not in _clients:
        _clients[service] = aws.new_client(service, config=_AS_IT_IS)
    client = _clients[service]
    method = next(method for method, called in client.meta.method_to_api_mapping.items() if called == name)
    getattr(client, method)(**request)


@cache
def runs() -> dict[str, bool]:
    """All runs of the modules' tests, and whether they are refused; those of modules/training-job by name alone."""
    return {
        (f"{file.root.name or 'root'}/" if file.root.name != "training-job" else "") + run.name: bool(run.expects)
        for file in files_of_runs(ROOT)
        for run in file.runs
    }


@pytest.mark.parametrize("operation", [operation for operation in BASES if operation not in OF_A_JOB])
def test_a_request_that_breaks_no_rule_is_taken(aws: Aws, operation: str) -> None:
    send(aws, operation, fresh(operation))


@pytest.mark.parametrize("rule", ROWS)
def test_the_embedded_cloud_refuses(aws: Aws, rule: str) -> None:
    row = ROWS[rule]
    for earlier in row.after:
        send(aws, earlier.asks, earlier.request)
    with pytest.raises(ClientError) as caught:
        send(aws, row.asks, row.request)
    error = caught.value.response["Error"]
    assert error["Code"] == row.code
    assert row.answer in error["Message"]


OF_MODELS: list[tuple[str, dict[str, Any], str, str]] = [
    ("sagemaker:CreateTrainingJob", {"RoleArn": "x" * 20}, "ValidationException", "'roleArn'"),
    ("stepfunctions:CreateStateMachine", {"definition": "x" * 1_048_577}, "ValidationException", "'definition'"),
    ("scheduler:CreateSchedule", {"Name": "x" * 65}, "ValidationException", "'name'"),
    ("events:PutTargets", {"Rule": "x" * 65}, "ValidationException", "'rule'"),
    ("cloudwatch:PutMetricAlarm", {"AlarmName": "x" * 256}, "ValidationError", "'alarmName'"),
    ("logs:PutRetentionPolicy", {"logGroupName": "a b"}, "InvalidParameterException", "'logGroupName'"),
    ("iam:CreateRole", {"RoleName": "x" * 65}, "ValidationError", "'roleName'"),
    ("kms:ScheduleKeyDeletion", {"PendingWindowInDays": 366}, "ValidationException", "'pendingWindowInDays'"),
    ("ssm:PutParameter", {"Type": "Number"}, "ValidationException", "'type'"),
    ("ecr:PutLifecyclePolicy", {"repositoryName": "XX"}, "InvalidParameterException", "'repositoryName'"),
]


@pytest.mark.parametrize(("operation", "changes", "code", "field"), OF_MODELS, ids=[row[0] for row in OF_MODELS])
def test_the_model_of_each_service_is_kept(
    aws: Aws, operation: str, changes: dict[str, Any], code: str, field: str
) -> None:
    """One limit of each service: names, patterns and numbers are read from all three protocols."""
    with pytest.raises(ClientError) as caught:
        send(aws, operation, Asked(asks=operation, breaks=changes).request)
    error = caught.value.response["Error"]
    assert error["Code"] == code
    assert "1 validation error detected: Value" in error["Message"]
    assert f"at {field} failed to satisfy constraint: Member must" in error["Message"]


def test_each_rule_of_the_embedded_cloud_is_in_the_ledger() -> None:
    kept = {name_of(rule) for rules in RULES.values() for rule in rules}
    assert kept - set(ROWS) == set()
    assert {row.rule for row in ROWS.values() if not row.says} - kept == set()


def test_no_rule_stands_twice() -> None:
    assert len(ROWS) == len(rows())


@pytest.mark.parametrize("rule", [name for name, row in ROWS.items() if row.before])
def test_a_module_refuses_before(rule: str) -> None:
    row = ROWS[rule]
    assert runs().get(row.before), f"{row.before} is no run that is refused"
    assert row.plan_alone == (row.before in TERRAFORM_ALONE)


PATHS = yaml_tables.read(LEDGER.with_name("paths.yaml"))


@pytest.mark.parametrize("path", PATHS, ids=[str(path["rule"]) for path in PATHS])
@pytest.mark.parametrize("column", ["job_file", "plan", "cloud"])
def test_what_no_single_request_breaks_is_shown_by_a_test(path: dict[str, str], column: str) -> None:
    assert set(path) == {"rule", "otherwise", "source", "job_file", "plan", "cloud"}
    file, _, name = path[column].partition("::")
    if (column, file) == ("job_file", "-"):
        return
    block = f'run "{name}" {{' if file.endswith(".hcl") else f"def {name}("
    assert block in (ROOT / file).read_text(encoding="utf-8")


def test_all_of_them_are_there() -> None:
    assert len(PATHS) == 9
    assert sum(path["job_file"] != "-" for path in PATHS) == 2
