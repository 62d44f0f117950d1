"""What the embedded cloud asks IAM about for a request is what AWS asks: each call is one that the reference knows.

A policy is made of exactly the calls of a request. The Service Authorization Reference then has nothing against it: the
actions exist, the resources are of a type that they are for, and the keys are ones that they know.
"""

from __future__ import annotations

from typing import Any

import pytest

from aws.bases import ACCOUNT, BASES, REGION, fresh
from aws.reference import Reference, judge
from aws.test_policies import EXEMPT, reference  # noqa: F401 - a fixture
from sagefit.doctor.permissions import rows
from sagefit.iam.evaluate import Call
from sagefit_cloud import permissions
from sagefit_cloud.rules import Place

pytestmark = pytest.mark.xdist_group("plans")
HERE = Place(ACCOUNT, REGION, "aws")
_IAM_NAMES = {"stepfunctions": "states"}
_MACHINE = BASES["stepfunctions:StartExecution"]["stateMachineArn"]
_TAGS = [{"Key": "a", "Value": "b"}]
#: What Terraform, the command line and the containers ask beside the requests of the ledger.
READS: list[tuple[str, str, dict[str, Any]]] = [
    ("cloudwatch", "DescribeAlarms", {"AlarmNames": ["a"]}),
    ("cloudwatch", "GetDashboard", {"DashboardName": "a"}),
    ("cloudwatch", "ListTagsForResource", {"ResourceARN": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:a"}),
    ("cloudwatch", "PutMetricData", {"Namespace": "/aws/sagemaker/TrainingJobs"}),
    ("ecr", "CreateRepository", {"repositoryName": "a", "tags": _TAGS}),
    ("ecr", "DescribeRepositories", {"repositoryNames": ["a"]}),
    ("ec2", "DescribeSubnets", {"SubnetIds": ["subnet-1"]}),
    ("ecr", "DescribeImages", {"repositoryName": "a"}),
    ("ecr", "GetAuthorizationToken", {}),
    ("events", "PutRule", {"Name": "a", "Tags": _TAGS}),
    ("events", "ListTargetsByRule", {"Rule": "a"}),
    ("iam", "AttachRolePolicy", {"RoleName": "a", "PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/sagefit/a"}),
    ("iam", "CreateRole", {"RoleName": "a", "Path": "/sagefit/", "Tags": _TAGS}),
    ("iam", "GetPolicyVersion", {"PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/sagefit/a"}),
    ("iam", "ListInstanceProfilesForRole", {"RoleName": "a"}),
    ("iam", "SimulatePrincipalPolicy", {"PolicySourceArn": f"arn:aws:iam::{ACCOUNT}:role/a"}),
    ("kms", "ListAliases", {}),
    ("kms", "CreateKey", {"Tags": [{"TagKey": "sagefit:platform", "TagValue": "dev"}]}),
    ("logs", "CreateLogGroup", {"logGroupName": "a", "tags": {"a": "b"}}),
    ("logs", "CreateLogStream", {"logGroupName": "a", "logStreamName": "b"}),
    ("logs", "PutLogEvents", {"logGroupName": "a", "logStreamName": "b"}),
    ("sagemaker", "DescribeTrainingJob", {"TrainingJobName": "a"}),
    ("sagemaker", "ListTrainingJobs", {}),
    ("scheduler", "GetSchedule", {"Name": "a"}),
    ("servicequotas", "ListServiceQuotas", {"ServiceCode": "sagemaker"}),
    ("sns", "CreateTopic", {"Name": "a", "Tags": _TAGS}),
    ("sns", "GetSubscriptionAttributes", {"SubscriptionArn": "a"}),
    ("sns", "ListSubscriptionsByTopic", {"TopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:a"}),
    ("sns", "Unsubscribe", {"SubscriptionArn": "a"}),
    ("ssm", "GetParameter", {"Name": "/sagefit/dev"}),
    ("ssm", "ListTagsForResource", {"ResourceType": "Parameter", "ResourceId": "/sagefit/dev"}),
    ("states", "ListStateMachineVersions", {"stateMachineArn": _MACHINE}),
    ("states", "ValidateStateMachineDefinition", {"definition": "{}"}),
    ("states", "DescribeExecution", {"executionArn": _MACHINE.replace("stateMachine", "execution") + ":run"}),
]
ASKED = [
    (_IAM_NAMES.get(service, service), action, fresh(operation))
    for operation in BASES
    for service, _, action in [operation.partition(":")]
    if service != "s3"
] + READS


def policy_of(calls: list[Call]) -> dict[str, Any]:
    """A policy that allows some calls and nothing else."""
    conditions = ({"Condition": {"StringEquals": dict(call.context)}} if call.context else {} for call in calls)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": call.action, "Resource": call.resource, **condition}
            for call, condition in zip(calls, conditions, strict=True)
        ],
    }


@pytest.mark.parametrize(("service", "operation", "request_"), ASKED, ids=[f"{row[0]}:{row[1]}" for row in ASKED])
def test_calls_are_those_of_the_reference(
    reference: Reference,  # noqa: F811
    service: str,
    operation: str,
    request_: dict[str, Any],
) -> None:
    calls = list(permissions.calls_of(service, operation, request_, HERE))
    assert calls
    found = [each for each in judge(reference, policy_of(calls)) if each.rule != "a call needs one too"]
    assert [str(each) for each in found if not any(row.covers(each) for row in EXEMPT)] == []


def test_who_passes_a_role_is_asked_for_it() -> None:
    calls = list(permissions.calls_of("scheduler", "CreateSchedule", fresh("scheduler:CreateSchedule"), HERE))
    role = f"arn:aws:iam::{ACCOUNT}:role/scheduler"
    assert calls[1:] == [Call("iam:PassRole", role, {"iam:PassedToService": "scheduler.amazonaws.com"})]


def test_who_starts_a_log_of_a_machine_is_asked_for_its_delivery() -> None:
    request = fresh("stepfunctions:CreateStateMachine")
    actions = [call.action for call in permissions.calls_of("states", "CreateStateMachine", request, HERE)]
    assert actions == [
        "states:CreateStateMachine",
        "iam:PassRole",
        "logs:CreateLogDelivery",
        "logs:DescribeResourcePolicies",
        "logs:ListLogDeliveries",
        "logs:PutResourcePolicy",
    ]


def test_what_doctor_asks_for_are_calls_of_the_reference(reference: Reference) -> None:  # noqa: F811
    names = {
        "partition": "aws",
        "region": REGION,
        "account": ACCOUNT,
        "platform": "dev",
        "prefix": "sagefit-dev",
        "suffix": "",
    }
    names |= {"job": "digits", "data": "data", "key": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"}
    names |= {"bucket": "states", "state": "sagefit/dev/platform.tfstate", "table": "locks"}
    wrong: list[str] = []
    for row in rows():
        context = {key: value.format_map(names) for key, value in row.context.items()}
        calls = [Call(action, arn.format_map(names), context) for action in row.actions for arn in row.on]
        found = [each for each in judge(reference, policy_of(calls)) if each.rule != "a call needs one too"]
        wrong += [str(each) for each in found if not any(exempt.covers(each) for exempt in EXEMPT)]
    assert wrong == []
