"""Calls that nobody who runs jobs may make: 25 for each of the three principals.

Every list holds the near misses of what the principal does have (another bucket, another role, another tag) and the
calls that would make more of a little access.
"""

from __future__ import annotations

from typing import Any

from proofs.calls import create, training_job, tuning_job
from sagefit.iam.evaluate import Call


def to_all(document: dict[str, Any]) -> list[Call]:
    """Ways to more access, and to other people's data."""
    account, region, name = document["account_id"], document["region"], document["name"]
    execution = document["role_arn"]
    return [
        Call("iam:CreateRole", f"arn:aws:iam::{account}:role/mine"),
        Call("iam:PutRolePolicy", execution),
        Call("iam:PassRole", f"arn:aws:iam::{account}:role/admin", {"iam:PassedToService": "sagemaker.amazonaws.com"}),
        Call("sts:AssumeRole", execution),
        Call("kms:ScheduleKeyDeletion", f"arn:aws:kms:{region}:{account}:key/1111"),
        Call("kms:Decrypt", f"arn:aws:kms:{region}:{account}:key/another"),
        Call("s3:GetObject", "arn:aws:s3:::another-bucket/data.csv"),
        Call("s3:DeleteBucket", f"arn:aws:s3:::{document['buckets']['artifacts']}"),
        Call("s3:PutBucketPolicy", f"arn:aws:s3:::{document['buckets']['data']}"),
        Call("s3:PutObject", f"arn:aws:s3:::{document['buckets']['data']}/train.csv"),
        Call("s3:DeleteObject", f"arn:aws:s3:::{document['buckets']['artifacts']}/jobs/a/model.tar.gz"),
        Call("ssm:PutParameter", f"arn:aws:ssm:{region}:{account}:parameter/sagefit/{name}"),
        Call("ssm:GetParameter", f"arn:aws:ssm:{region}:{account}:parameter/database/password"),
        Call("states:UpdateStateMachine", f"arn:aws:states:{region}:{account}:stateMachine:sagefit-{name}-quickstart"),
        Call("logs:DeleteLogGroup", f"arn:aws:logs:{region}:{account}:log-group:/aws/sagemaker/TrainingJobs"),
        Call("ecr:PutImage", f"arn:aws:ecr:{region}:{account}:repository/sagefit-{name}"),
        Call("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{region}:{account}:secret:token"),
        Call("ec2:RunInstances", f"arn:aws:ec2:{region}:{account}:instance/*"),
    ]


def to_a_machine(document: dict[str, Any], job: str, request: dict[str, Any]) -> list[Call]:
    """Training jobs other than those that were approved, and other things of the same services."""
    own = training_job(document, job)
    execution = document["role_arn"]
    other_machine = document["role_arn"].replace("execution", "other-job")
    return [
        *to_all(document),
        create(request, training_job(document, "another-job")),
        # Names that begin like this job's: those of other jobs, and what no run of it is called.
        *(create(request, training_job(document, f"{job}-{more}")) for more in ("large", "latest", "2", "261121")),
        create(request, own.removesuffix("-0")),
        create(request, f"{own}-0"),
        Call("sagemaker:DescribeTrainingJob", training_job(document, f"{job}-latest")),
        Call("sagemaker:AddTags", training_job(document, f"{job}-latest")),
        Call(
            "sagemaker:UpdateTrainingJob", training_job(document, f"{job}-latest"), {"sagemaker:KeepAlivePeriod": "0"}
        ),
        create(request, own, InstanceTypes=["ml.p5.48xlarge"]),
        create(
            request, own, InstanceTypes=[*create(request, own).context["sagemaker:InstanceTypes"], "ml.p5.48xlarge"]
        ),
        create(request, own, InstanceTypes=None),
        create(request, own, MaxRuntimeInSeconds="2419200"),
        create(request, own, KeepAlivePeriod="21600"),
        create(request, own, EnableRemoteDebug="true"),
        create(request, own, NetworkIsolation="false"),
        create(request, own, NetworkIsolation=None),
        Call("iam:PassRole", request["RoleArn"], {"iam:PassedToService": "ec2.amazonaws.com"}),
        Call("iam:PassRole", other_machine, {"iam:PassedToService": "sagemaker.amazonaws.com"}),
        *(
            Call("iam:PassRole", role, {"iam:PassedToService": "sagemaker.amazonaws.com"})
            for role in (execution, request["RoleArn"].replace(job, "another-job"))
            if role != request["RoleArn"]
        ),
        Call("sagemaker:UpdateTrainingJob", own, {"sagemaker:KeepAlivePeriod": "3600"}),
        Call("sagemaker:UpdateTrainingJob", training_job(document, "another-job"), {"sagemaker:KeepAlivePeriod": "0"}),
        Call("sagemaker:DescribeTrainingJob", training_job(document, "another-job")),
        Call("sagemaker:AddTags", own.replace(":training-job/", ":endpoint/")),
        Call("sagemaker:DeleteTrainingJob", own),
        Call("sagemaker:StopTrainingJob", own),
        Call("sagemaker:CreateProcessingJob", own.replace(":training-job/", ":processing-job/")),
        Call("sagemaker:CreateHyperParameterTuningJob", tuning_job(document, job)),
        Call("sagemaker:CreateEndpoint", own.replace(":training-job/", ":endpoint/")),
        Call("s3:GetObject", f"arn:aws:s3:::{document['buckets']['data']}/train.csv"),
        Call("logs:PutLogEvents", "arn:aws:logs:us-east-1:123456789012:log-group:other:log-stream:x"),
    ]


def to_a_tuning_machine(document: dict[str, Any], job: str) -> list[Call]:
    """A machine that tunes makes no training jobs itself, and reads those of its own searches only."""
    own, elsewhere = tuning_job(document, job), tuning_job(document, "another-job")
    small: dict[str, str | list[str]] = {"sagemaker:MaxRuntimeInSeconds": "60"}
    small["sagemaker:InstanceTypes"] = ["ml.m5.large"]
    kinds = small | {"sagemaker:InstanceTypes": ["ml.p5.48xlarge"]}
    return [
        Call("sagemaker:CreateTrainingJob", training_job(document, job), small),
        Call("sagemaker:CreateHyperParameterTuningJob", own, kinds),
        Call("sagemaker:CreateHyperParameterTuningJob", own),
        Call(
            "sagemaker:CreateHyperParameterTuningJob",
            f"{own}-more",
            small,
        ),
        Call("sagemaker:CreateHyperParameterTuningJob", elsewhere, small),
        Call("sagemaker:DescribeHyperParameterTuningJob", elsewhere),
        Call("sagemaker:ListTrainingJobsForHyperParameterTuningJob", elsewhere),
        Call("sagemaker:StopHyperParameterTuningJob", own),
        Call("sagemaker:DeleteHyperParameterTuningJob", own),
        Call("sagemaker:DescribeTrainingJob", training_job(document, job)),
        Call("sagemaker:DescribeTrainingJob", training_job(document, "another-job", "0-001-0123abcd")),
        Call("sagemaker:AddTags", elsewhere),
    ]


def to_a_private_machine(document: dict[str, Any], job: str, request: dict[str, Any]) -> list[Call]:
    """What its network and its key rule out."""
    own = training_job(document, job)
    return [
        create(request, own, VpcSubnets=["subnet-0bbbbbbbbbbbbbbbb"]),
        create(request, own, VpcSubnets=None),
        create(request, own, VpcSecurityGroupIds=None),
        create(request, own, VpcSecurityGroupIds=["sg-0bbbbbbbbbbbbbbbb"]),
        create(request, own, OutputKmsKey=None),
        create(request, own, OutputKmsKey="arn:aws:kms:us-east-1:123456789012:key/another"),
    ]


def to_a_container(document: dict[str, Any]) -> list[Call]:
    """Code of a user that tries what else the role might have."""
    account, region = document["account_id"], document["region"]
    buckets = {key: f"arn:aws:s3:::{name}" for key, name in document["buckets"].items()}
    logs = f"arn:aws:logs:{region}:{account}:log-group"
    return [
        *to_all(document),
        Call("s3:PutObject", f"{buckets['artifacts']}/elsewhere/x"),
        Call("s3:ListBucket", buckets["artifacts"]),
        Call("s3:ListBucket", buckets["checkpoints"], {"s3:prefix": ""}),
        Call("s3:ListBucket", "arn:aws:s3:::another-bucket", {"s3:prefix": "jobs/"}),
        Call("s3:GetBucketPolicy", buckets["data"]),
        Call("s3:ListAllMyBuckets"),
        Call("sagemaker:CreateTrainingJob", training_job(document, "mine")),
        Call("states:StartExecution", f"arn:aws:states:{region}:{account}:stateMachine:sagefit-dev-quickstart"),
        Call("logs:PutLogEvents", f"{logs}:/aws/lambda/x:log-stream:y"),
        Call("logs:GetLogEvents", f"{logs}:/aws/sagemaker/TrainingJobs:log-stream:y"),
        Call("sagemaker:CreateProcessingJob", training_job(document, "mine").replace(":training-", ":processing-")),
        Call("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "AWS/Billing"}),
        Call("cloudwatch:PutMetricData"),
        Call("ecr:BatchGetImage", f"arn:aws:ecr:{region}:{account}:repository/another"),
        Call("kms:CreateGrant", f"arn:aws:kms:{region}:{account}:key/1111", {"kms:GrantIsForAWSResource": "true"}),
        Call("kms:CreateGrant", _key(document), {"kms:GrantIsForAWSResource": "false"}),
        Call(
            "ec2:DeleteNetworkInterface",
            f"arn:aws:ec2:eu-west-1:{account}:network-interface/eni-0123456789abcdef0",
            {"ec2:Subnet": f"arn:aws:ec2:{region}:{account}:subnet/subnet-0aaaaaaaaaaaaaaaa"},
        ),
        Call(
            "ec2:CreateNetworkInterface",
            f"arn:aws:ec2:{region}:{account}:subnet/subnet-0bbbbbbbbbbbbbbbb",
        ),
        Call(
            "ec2:DeleteNetworkInterface",
            f"arn:aws:ec2:{region}:{account}:network-interface/eni-0123456789abcdef0",
            {"ec2:Subnet": f"arn:aws:ec2:{region}:{account}:subnet/subnet-0bbbbbbbbbbbbbbbb"},
        ),
    ]


def to_a_container_of_a_job(document: dict[str, Any], job: str) -> list[Call]:
    """What is another job's, or what the job does not name: read, written, deleted, listed."""
    buckets = {key: f"arn:aws:s3:::{name}" for key, name in document["buckets"].items()}
    objects = [
        f"{buckets[key]}/jobs/{other}"
        for key in ("artifacts", "checkpoints", "data")
        for other in ("another-job/x", f"{job}-large/x", f"{job[:-1]}/x", f"{job}.x", "x")
    ]
    listings = [
        (buckets[key], prefix) for key in buckets for prefix in ("", "jobs/", "jobs/another-job/", f"{job}-large")
    ]
    return [
        *(Call(f"s3:{action}Object", each) for each in objects for action in ("Get", "Put", "Delete")),
        *(Call("s3:ListBucket", bucket, {"s3:prefix": prefix}) for bucket, prefix in listings),
        *(Call("s3:ListBucket", bucket) for bucket in buckets.values()),
        *(Call(f"s3:{action}Object", f"{buckets['data']}/jobs/{job}/code/x") for action in ("Put", "Delete")),
        Call("s3:GetObject", f"{buckets['data']}/datasets/x"),
        Call("s3:DeleteObject", f"{buckets['artifacts']}/jobs/{job}/x"),
        Call("s3:GetObject", "arn:aws:s3:::my-data/other/x"),
        Call("s3:PutObject", "arn:aws:s3:::my-data/raw/x"),
        Call("s3:ListBucket", "arn:aws:s3:::my-data", {"s3:prefix": "other/"}),
        *(Call("s3:ListBucket", "arn:aws:s3:::another", {"s3:prefix": own}) for own in (f"jobs/{job}/", "raw/")),
        *to_a_container(document),
    ]


def to_a_container_of_a_request(request: dict[str, Any], document: dict[str, Any]) -> list[Call]:
    """What is not for the keys and the network that a job asks for: another Region, somebody else, a change."""
    keys = {request["OutputDataConfig"].get("KmsKeyId"), request["ResourceConfig"].get("VolumeKmsKeyId")} - {None}
    account, region = document["account_id"], document["region"]
    names = request.get("VpcConfig", {}).get("Subnets", [])
    subnets = [f"arn:aws:ec2:{region}:{account}:subnet/{name}" for name in names]
    elsewhere = f"arn:aws:ec2:eu-west-1:{account}:network-interface/eni-0123456789abcdef0"
    return [
        *(Call("ec2:DeleteNetworkInterface", elsewhere, {"ec2:Subnet": subnet}) for subnet in subnets),
        *(Call("kms:CreateGrant", key, {"kms:GrantIsForAWSResource": "false"}) for key in keys),
        *(Call("kms:CreateGrant", key) for key in keys),
        *(Call(f"kms:{action}", key) for key in keys for action in ("PutKeyPolicy", "ScheduleKeyDeletion")),
    ]


def to_an_engineer(document: dict[str, Any], job: str) -> list[Call]:
    """Everything around the approval: other jobs, other people's runs, the role itself."""
    account, region, name = document["account_id"], document["region"], document["name"]
    states = f"arn:aws:states:{region}:{account}"
    own, machine = training_job(document, job), f"{states}:stateMachine:sagefit-{name}-{job}"
    elsewhere = own.replace(region, "eu-west-1")
    return [
        *to_all(document),
        Call("sagemaker:CreateTrainingJob", own, {"sagemaker:InstanceTypes": ["ml.m5.large"]}),
        Call("sagemaker:DeleteTrainingJob", own),
        Call("sagemaker:UpdateTrainingJob", own, {"sagemaker:KeepAlivePeriod": "0"}),
        Call("sagemaker:StopTrainingJob", own),
        Call("sagemaker:StopTrainingJob", own, {"aws:ResourceTag/sagefit:platform": "another"}),
        Call("sagemaker:StopTrainingJob", elsewhere, {"aws:ResourceTag/sagefit:platform": name}),
        Call("sagemaker:DescribeTrainingJob", elsewhere),
        Call("sagemaker:CreateHyperParameterTuningJob", tuning_job(document, job)),
        Call("sagemaker:StopHyperParameterTuningJob", tuning_job(document, job)),
        Call("sagemaker:StopProcessingJob", own.replace(":training-job/", ":processing-job/")),
        Call("sagemaker:CreateProcessingJob", own.replace(":training-job/", ":processing-job/")),
        Call("kms:Decrypt", _key(document)),
        Call("kms:Decrypt", _key(document) + "-another", {"kms:ViaService": f"s3.{region}.amazonaws.com"}),
        Call("s3:ListBucket", "arn:aws:s3:::another-bucket"),
        Call("iam:PassRole", document["role_arn"], {"iam:PassedToService": "sagemaker.amazonaws.com"}),
        Call("states:StartExecution", f"{states}:stateMachine:sagefit-another-{job}"),
        Call("states:StartExecution", f"{states}:stateMachine:payments"),
        Call("states:StopExecution", f"{states}:execution:payments:run-1"),
        Call("states:DeleteStateMachine", machine),
        Call("states:CreateStateMachine", machine),
        Call("states:TagResource", machine),
        Call("s3:GetObject", f"arn:aws:s3:::{document['buckets']['data']}/train.csv"),
        Call("s3:PutObject", f"arn:aws:s3:::{document['buckets']['artifacts']}/jobs/{job}/model.tar.gz"),
        Call("logs:GetLogEvents", f"arn:aws:logs:{region}:{account}:log-group:/aws/lambda/x:log-stream:y"),
    ]


def _key(document: dict[str, Any]) -> str:
    """The platform's key, or what one would be called."""
    return document["kms_key_arn"] or f"arn:aws:kms:{document['region']}:{document['account_id']}:key/2222"
