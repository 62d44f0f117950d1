"""A valid request of each operation that the ledger has rules for, and what has to be there for it.

A rule of the ledger changes such a request as little as it takes to break the rule.
"""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

from cloud.aws_user import Aws

ACCOUNT, REGION = "123456789012", "us-east-1"
_ROLES, _TOPIC = f"arn:aws:iam::{ACCOUNT}:role", f"arn:aws:sns:{REGION}:{ACCOUNT}:ledger"
_MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:ledger"
_IMAGE = f"763104351884.dkr.ecr.{REGION}.amazonaws.com/pytorch-training:2.6.0-cpu-py312"
_SERVICES = ("sagemaker", "states", "scheduler", "events")
_LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/vendedlogs/states/ledger:*"
_LOGGING = [
    *(f"logs:{verb}LogDelivery" for verb in ("Create", "Get", "Update", "Delete")),
    *("logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups"),
]
_OWNER = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
_names = itertools.count()


def policy(*statements: dict[str, Any]) -> str:
    """A policy as text."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def trust(service: str) -> str:
    """The trust policy of a role for a service."""
    return policy({"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"})


def definition(**states: dict[str, Any]) -> str:
    """A definition that starts with its first state."""
    return json.dumps({"StartAt": next(iter(states)), "States": states})


_CHANNEL = {
    "ChannelName": "train",
    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket-data/x/"}},
}
_TRAINING: dict[str, Any] = {
    "RoleArn": f"{_ROLES}/sagemaker",
    "AlgorithmSpecification": {"TrainingImage": _IMAGE, "TrainingInputMode": "File"},
    "InputDataConfig": [_CHANNEL],
    "OutputDataConfig": {"S3OutputPath": "s3://bucket-artifacts/jobs"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
}
_TUNED = copy.deepcopy(_TRAINING)
_TUNED["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
_DATA = {
    "S3Uri": "s3://bucket-data/x/",
    "LocalPath": "/opt/ml/processing/input/x",
    "S3DataType": "S3Prefix",
    "S3InputMode": "File",
}
_QUERY = 'SELECT MAX(MemoryUtilization) FROM "/aws/sagemaker/TrainingJobs" GROUP BY Host ORDER BY MAX() DESC'

BASES: dict[str, dict[str, Any]] = {
    "sagemaker:CreateTrainingJob": {"TrainingJobName": "ledger", **_TRAINING},
    "sagemaker:UpdateTrainingJob": {
        "TrainingJobName": "ledger-warm",
        "ResourceConfig": {"KeepAlivePeriodInSeconds": 600},
    },
    "sagemaker:StopTrainingJob": {"TrainingJobName": "ledger-running"},
    "sagemaker:CreateHyperParameterTuningJob": {
        "HyperParameterTuningJobName": "ledger",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 1},
            "ParameterRanges": {
                "IntegerParameterRanges": [{"Name": "depth", "MinValue": "1", "MaxValue": "5"}],
                "ContinuousParameterRanges": [{"Name": "rate", "MinValue": "0.1", "MaxValue": "0.5"}],
                "CategoricalParameterRanges": [{"Name": "optimizer", "Values": ["sgd", "adam"]}],
            },
        },
        "TrainingJobDefinition": {**_TUNED, "StaticHyperParameters": {"fixed": "1"}},
    },
    "sagemaker:CreateProcessingJob": {
        "ProcessingJobName": "ledger",
        "RoleArn": f"{_ROLES}/sagemaker",
        "AppSpecification": {"ImageUri": _IMAGE, "ContainerEntrypoint": ["python3", "-c", "pass"]},
        "ProcessingResources": {"ClusterConfig": _TRAINING["ResourceConfig"]},
        "ProcessingInputs": [{"InputName": "x", "S3Input": _DATA}],
        "ProcessingOutputConfig": {
            "Outputs": [
                {
                    "OutputName": "y",
                    "S3Output": {
                        "S3Uri": "s3://bucket-artifacts/y/",
                        "LocalPath": "/opt/ml/processing/output/y",
                        "S3UploadMode": "EndOfJob",
                    },
                }
            ]
        },
    },
    "stepfunctions:CreateStateMachine": {
        "name": "ledger",
        "roleArn": f"{_ROLES}/states",
        "definition": definition(a={"Type": "Pass", "End": True}),
        "loggingConfiguration": {
            "level": "ERROR",
            "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": _LOGS}}],
        },
    },
    "stepfunctions:StartExecution": {"stateMachineArn": _MACHINE, "name": "ledger"},
    "scheduler:CreateSchedule": {
        "Name": "ledger",
        "ScheduleExpression": "cron(0 3 ? * MON-FRI *)",
        "ScheduleExpressionTimezone": "Europe/Berlin",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": "arn:aws:scheduler:::aws-sdk:sfn:startExecution",
            "RoleArn": f"{_ROLES}/scheduler",
            "Input": json.dumps({"StateMachineArn": _MACHINE}),
        },
    },
    "events:PutTargets": {
        "Rule": "ledger",
        "Targets": [
            {
                "Id": "t",
                "Arn": _MACHINE,
                "RoleArn": f"{_ROLES}/events",
                "InputTransformer": {"InputPathsMap": {"name": "$.detail.name"}, "InputTemplate": '{"name": "<name>"}'},
            }
        ],
    },
    "events:DeleteRule": {"Name": "ledger-empty"},
    "cloudwatch:PutMetricAlarm": {
        "AlarmName": "ledger",
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": 90,
        "EvaluationPeriods": 3,
        "DatapointsToAlarm": 2,
        "TreatMissingData": "notBreaching",
        "Metrics": [{"Id": "q", "Expression": _QUERY, "Period": 300, "ReturnData": True}],
    },
    "cloudwatch:PutDashboard": {
        "DashboardName": "ledger",
        "DashboardBody": json.dumps(
            {"widgets": [{"type": "text", "x": 0, "y": 0, "width": 24, "height": 2, "properties": {"markdown": "x"}}]}
        ),
    },
    "logs:PutRetentionPolicy": {"logGroupName": "/aws/vendedlogs/states/ledger", "retentionInDays": 30},
    "logs:CreateLogGroup": {"logGroupName": "ledger-new"},
    "sns:SetTopicAttributes": {
        "TopicArn": _TOPIC,
        "AttributeName": "Policy",
        "AttributeValue": policy(
            {
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sns:Publish",
                "Resource": _TOPIC,
            }
        ),
    },
    "iam:CreateRole": {"RoleName": "ledger", "AssumeRolePolicyDocument": trust("states")},
    "iam:DeleteRole": {"RoleName": "ledger-empty"},
    "iam:PutRolePolicy": {
        "RoleName": "states",
        "PolicyName": "more",
        "PolicyDocument": policy({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::x/*"}),
    },
    "iam:CreatePolicy": {
        "PolicyName": "ledger",
        "PolicyDocument": policy({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::x/*"}),
    },
    "kms:CreateKey": {"Policy": policy(_OWNER)},
    "kms:ScheduleKeyDeletion": {"KeyId": "of the key that prepare makes", "PendingWindowInDays": 7},
    "ssm:PutParameter": {"Name": "/sagefit/ledger", "Type": "String", "Value": "x"},
    "ecr:PutLifecyclePolicy": {
        "repositoryName": "ledger",
        "lifecyclePolicyText": json.dumps(
            {
                "rules": [
                    {
                        "rulePriority": number,
                        "selection": {"tagStatus": status, "countType": "imageCountMoreThan", "countNumber": 5},
                        "action": {"type": "expire"},
                    }
                    for number, status in ((1, "untagged"), (2, "any"))
                ]
            }
        ),
    },
    "ecr:DeleteRepository": {"repositoryName": "ledger-empty"},
    "s3:PutObject": {"Bucket": "bucket-data", "Key": "tagged", "Body": b"", "Tagging": "a=1"},
    "s3:DeleteBucket": {"Bucket": "bucket-empty"},
}
#: Those whose valid request needs a job that runs; the rules of them are asked without one.
OF_A_JOB = ("sagemaker:UpdateTrainingJob", "sagemaker:StopTrainingJob")
_NAMES = ("TrainingJobName", "HyperParameterTuningJobName", "ProcessingJobName", "name", "Name")
_MADE = (
    "CreateTrainingJob",
    "CreateHyperParameterTuningJob",
    "CreateProcessingJob",
    "CreateStateMachine",
    "StartExecution",
    "CreateSchedule",
)


def prepare(aws: Aws) -> None:
    """Make what the requests take for granted."""
    iam, s3 = aws.client("iam"), aws.client("s3")
    for service in _SERVICES:
        iam.create_role(RoleName=service, AssumeRolePolicyDocument=trust(service))
        everything = {"Effect": "Allow", "Action": ["s3:*", "states:*", *_LOGGING], "Resource": "*"}
        iam.put_role_policy(RoleName=service, PolicyName="work", PolicyDocument=policy(everything))
    iam.create_role(RoleName="silent", AssumeRolePolicyDocument=trust("states"))
    iam.create_role(RoleName="ledger-empty", AssumeRolePolicyDocument=trust("states"))
    for bucket in ("data", "artifacts", "empty", "full"):
        s3.create_bucket(Bucket=f"bucket-{bucket}")
    aws.put("x/1", "1")
    aws.put("x", "1", bucket="bucket-full")
    aws.client("logs").create_log_group(logGroupName="/aws/vendedlogs/states/ledger")
    aws.client("sns").create_topic(Name="ledger")
    for repository in ("ledger", "ledger-empty"):
        aws.client("ecr").create_repository(repositoryName=repository)
    BASES["kms:ScheduleKeyDeletion"]["KeyId"] = aws.client("kms").create_key()["KeyMetadata"]["KeyId"]
    aws.client("stepfunctions").create_state_machine(**BASES["stepfunctions:CreateStateMachine"])
    for rule in ("ledger", "ledger-empty"):
        # Its target is a machine: one that started at its own end would never rest.
        aws.client("events").put_rule(Name=rule, EventPattern='{"source": ["aws.sagemaker"]}')
    aws.client("events").put_targets(**BASES["events:PutTargets"])


def fresh(operation: str) -> dict[str, Any]:
    """The valid request of an operation, with a name that is not used yet where it makes something."""
    request = copy.deepcopy(BASES[operation])
    if operation.endswith(_MADE):
        name = next(field for field in _NAMES if field in request)
        request[name] = f"ledger-{next(_names)}"
    return request
