"""Requests that are throttled: every service says so in its own words, clients try again, and people are told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.retries.standard import ThrottledRetryableChecker

from cli_runner import Sagefit
from cloud.aws_user import Aws
from sagefit.answers import THROTTLED, understood
from sagefit.cloud import control
from sagefit.errors import FAILED

pytestmark = pytest.mark.xdist_group("throttling")

#: botocore's own list, which its standard mode of retries goes by.
CODES: set[str] = set(vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"])
#: A read of each service that Sagefit, its modules or its pipelines call.
READS: dict[str, tuple[str, dict[str, Any]]] = {
    "application-autoscaling": ("describe_scalable_targets", {"ServiceNamespace": "sagemaker"}),
    "cloudwatch": ("describe_alarms", {}),
    "ec2": ("describe_vpcs", {}),
    "ecr": ("describe_repositories", {}),
    "events": ("list_rules", {}),
    "iam": ("list_roles", {}),
    "kms": ("list_keys", {}),
    "logs": ("describe_log_groups", {}),
    "s3": ("list_buckets", {}),
    "sagemaker": ("list_training_jobs", {}),
    "scheduler": ("list_schedules", {}),
    "service-quotas": ("list_service_quotas", {"ServiceCode": "sagemaker"}),
    "sns": ("list_topics", {}),
    "ssm": ("describe_parameters", {}),
    "stepfunctions": ("list_state_machines", {}),
    "sts": ("get_caller_identity", {}),
}
TASK = "arn:aws:states:::aws-sdk:sagemaker:describeTrainingJob"


def a_cloud(home: Path, faults: str) -> Iterator[Aws]:
    file = home / "faults.yaml"
    file.write_text(faults, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAGEFIT_HOME", str(home))
        control.up(faults=file)
        found = Aws(control.environment())
    yield found
    found.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAGEFIT_HOME", str(home))
        control.down()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("busy")


@pytest.fixture(scope="module")
def busy(home: Path) -> Iterator[Aws]:
    """A cloud that refuses the first try of everything, and of lists of runs every try."""
    yield from a_cloud(
        home,
        """
- { match: { call: "stepfunctions:ListExecutions" }, outcome: { throttle: 1000 } }
- { match: { call: "*" }, outcome: { throttle: 1 } }
""",
    )


@pytest.fixture(scope="module")
def shut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a cloud that refuses every try of everything."""
    own = tmp_path_factory.mktemp("shut")
    for _ in a_cloud(own, '[{ match: { call: "*" }, outcome: { throttle: 1000 } }]'):
        yield own


def _client(aws: Aws, service: str, tries: int) -> Any:
    return aws.new_client(service, config=Config(retries={"mode": "standard", "total_max_attempts": tries}))


@pytest.mark.parametrize("service", READS)
def test_every_service_throttles_in_words_that_clients_understand(busy: Aws, service: str) -> None:
    method, arguments = READS[service]
    with pytest.raises(ClientError) as caught:
        getattr(_client(busy, service, 1), method)(**arguments)
    code = caught.value.response["Error"]["Code"]
    assert code in CODES
    assert understood(caught.value)
    assert getattr(_client(busy, service, 2), method)(**arguments)["ResponseMetadata"]["RetryAttempts"] == 1


def test_what_is_known_as_throttling_is_what_botocore_knows() -> None:
    """But for a limit that patience does not cure, and two codes of services that Sagefit does not call."""
    assert {"BandwidthLimitExceeded", "LimitExceededException", "TransactionInProgressException"} == CODES - THROTTLED
    assert CODES > THROTTLED


def test_an_upload_and_a_question_without_a_body_are_throttled_too(busy: Aws) -> None:
    s3 = _client(busy, "s3", 2)
    s3.create_bucket(Bucket="patient")
    body = b"x" * 3_000_000
    assert s3.put_object(Bucket="patient", Key="a", Body=body)["ResponseMetadata"]["RetryAttempts"] == 1
    assert s3.head_object(Bucket="patient", Key="a")["ContentLength"] == len(body)
    assert s3.get_object(Bucket="patient", Key="a")["Body"].read() == body


@pytest.mark.parametrize(("tries", "says"), [(0, "Rate exceeded"), (1, "not found")], ids=["once", "again"])
def test_a_state_machine_tries_again_by_itself(busy: Aws, tries: int, says: str) -> None:
    """Its retry is another invocation with the same content."""
    task: dict[str, Any] = {"Type": "Task", "Resource": TASK, "End": True}
    task["Parameters"] = {"TrainingJobName": f"nobody-{tries}"}
    if tries:
        task["Retry"] = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": tries}]
    states = _client(busy, "stepfunctions", 3)
    definition = json.dumps({"StartAt": "look", "States": {"look": task}})
    made = states.create_state_machine(name=f"look-{tries}", definition=definition, roleArn=_role(busy))
    started = states.start_execution(stateMachineArn=made["stateMachineArn"], input="{}")["executionArn"]
    while (ended := states.describe_execution(executionArn=started))["status"] == "RUNNING":
        time.sleep(0.2)
    assert says in ended["cause"]


def _role(aws: Aws) -> str:
    iam = _client(aws, "iam", 3)
    trust = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}
    everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    try:
        found = iam.get_role(RoleName="looks")
    except iam.exceptions.NoSuchEntityException:
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        found = iam.create_role(RoleName="looks", AssumeRolePolicyDocument=document)
        iam.put_role_policy(RoleName="looks", PolicyName="all", PolicyDocument=json.dumps(everything))
    return str(found["Role"]["Arn"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs", "quickstart"),
        ("start", "quickstart"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_says_that_it_was_throttled(shut: Path, arguments: tuple[str, ...]) -> None:
    """It asks for patience, not for another login."""
    done = Sagefit(shut)("--cloud", "local", *arguments, check=FAILED)
    assert (
        "error: platform: cannot read /sagefit/dev: AWS throttles the account: it refused GetParameter, each time it "
        "was tried (ThrottlingException)" in done.err
    ), done.err
    assert "run it again in a minute" in done.err
    assert "login" not in done.err


def test_the_doctor_says_that_it_was_throttled(shut: Path) -> None:
    done = Sagefit(shut)("--cloud", "local", "doctor", check=FAILED)
    assert "AWS throttles the account: it refused GetCallerIdentity" in done.out
    assert "log in" not in done.out


def test_a_role_that_is_throttled_is_not_called_wrong(shut: Path) -> None:
    role = "arn:aws:iam::123456789012:role/apply"
    done = Sagefit(shut, SAGEFIT_ROLE_ARN=role)("--cloud", "local", "runs", "quickstart", check=FAILED)
    assert "SAGEFIT_ROLE_ARN" in done.err
    assert "AWS throttles the account: it refused AssumeRole" in done.err
    assert "trust" not in done.err


def test_later_answers_are_told_alike(busy: Aws, home: Path) -> None:
    """The platform's document is read at the second try; the list of runs never is."""
    place = {"schema": 1, "name": "dev", "partition": "aws", "region": "us-east-1", "account_id": "123456789012"}
    document = place | {"buckets": {"data": "data", "artifacts": "artifacts", "checkpoints": "checkpoints"}}
    _client(busy, "ssm", 2).put_parameter(Name="/sagefit/dev", Value=json.dumps(document), Type="String")
    done = Sagefit(home)("--cloud", "local", "runs", "quickstart", check=FAILED)
    assert "error: AWS throttles the account: it refused ListExecutions" in done.err, done.err


@pytest.mark.full(witness="tests/cloud/test_throttling.py")
def test_a_platform_and_a_run_live_with_it(tmp_path: Path) -> None:
    """Whatever asks, Terraform, the command line or the state machine, is refused at first and ends as it should."""
    for aws in a_cloud(tmp_path, '[{ match: { call: "*" }, outcome: { throttle: 1 } }]'):
        sagefit = Sagefit(tmp_path, CLOUD="local")
        sagefit("platform", "apply", "dev", "--yes")
        assert "succeeded" in sagefit("run", "quickstart", "--yes").out
        assert "accuracy=" in sagefit("runs", "quickstart").out
        sagefit("destroy", "quickstart", "--yes")
        sagefit("platform", "destroy", "dev", "--yes", check=None)  # the run's files are in its buckets
        statuses: dict[str, set[int]] = {}
        for call in sagefit.calls():
            statuses.setdefault(f"{call['service']}:{call['action']}", set()).add(call["status"])
        assert len(statuses) > 80
        assert not {name for name, seen in statuses.items() if not seen & {400, 503}}
        assert not {name for name, seen in statuses.items() if not seen - {400, 503}}
        assert aws.client("sagemaker").list_training_jobs()["TrainingJobSummaries"]
