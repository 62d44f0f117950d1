"""API calls as IAM sees them, made from what the plan says: requests for training jobs and platform documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.iam.evaluate import Call
from sagefit_cloud import authorization

_RUN = "261121-120000"


def training_job(document: dict[str, Any], job: str, attempt: str = "0") -> str:
    """The ARN of a training job of a run of a job."""
    return f"arn:aws:sagemaker:{document['region']}:{document['account_id']}:training-job/{job}-{_RUN}-{attempt}"


def processing_job(document: dict[str, Any], job: str, step: str = "p0") -> str:
    """The ARN of a processing job of a run of a job."""
    return training_job(document, job, step).replace(":training-job/", ":processing-job/")


def tuning_job(document: dict[str, Any], job: str, attempt: str = "0") -> str:
    """The ARN of a tuning job of a run of a job."""
    return training_job(document, job, attempt).replace(":training-job/", ":hyper-parameter-tuning-job/")


def create(request: dict[str, Any], resource: str, **changes: str | list[str] | None) -> Call:
    """CreateTrainingJob with the condition keys that the service makes of a request; None takes a key away."""
    changed = {f"sagemaker:{key}": value for key, value in changes.items()}
    keys = {**authorization.creation_keys(request), **changed}
    return Call(
        "sagemaker:CreateTrainingJob", resource, {key: value for key, value in keys.items() if value is not None}
    )


def create_step(request: dict[str, Any], resource: str, **changes: str | list[str] | None) -> Call:
    """CreateProcessingJob as `create` makes the call for a training job."""
    changed = {f"sagemaker:{key}": value for key, value in changes.items()}
    keys = {**authorization.processing_keys(request), **changed}
    return Call(
        "sagemaker:CreateProcessingJob", resource, {key: value for key, value in keys.items() if value is not None}
    )


def of_a_machine(requests: list[tuple[str, dict[str, Any]]], document: dict[str, Any], job: str) -> Iterator[Call]:
    """What a state machine does to run a job: its tasks, and what AWS asks for with them."""
    tunes = any(action == "createHyperParameterTuningJob" for action, _ in requests)
    last = sum(action in ("createTrainingJob", "createHyperParameterTuningJob") for action, _ in requests) - 1
    for action, parameters in requests:
        for attempt in ("0", "0b", str(last), f"{last}c"):
            resource = training_job(document, job, f"{attempt}-001-0123abcd" if tunes else attempt)
            if "HyperParameterTuningJob" in action:
                resource = tuning_job(document, job, attempt)
            if "ProcessingJob" in action:
                resource = processing_job(document, job, f"p{attempt}")
            yield from authorization.calls_of(f"{action[0].upper()}{action[1:]}", parameters, resource)
    # https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
    for verb in ("Create", "Get", "Update", "Delete"):
        yield Call(f"logs:{verb}LogDelivery")
    for action in ("ListLogDeliveries", "PutResourcePolicy", "DescribeResourcePolicies", "DescribeLogGroups"):
        yield Call(f"logs:{action}")


def of_a_container(request: dict[str, Any], document: dict[str, Any], job: str) -> Iterator[Call]:
    """What SageMaker and the container do in the name of the execution role."""
    buckets = {key: f"arn:aws:s3:::{name}" for key, name in document["buckets"].items()}
    own = f"jobs/{job}/{job}-{_RUN}"
    for channel in request["InputDataConfig"]:
        yield from _reading(channel["DataSource"]["S3DataSource"])
    for action in ("PutObject", "AbortMultipartUpload", "GetObject"):
        yield Call(f"s3:{action}", f"{buckets['artifacts']}/{own}-0/output/model.tar.gz")
    for key in ("artifacts", "checkpoints"):
        yield Call("s3:ListBucket", buckets[key], {"s3:prefix": f"{own}/"})
    for action in ("GetObject", "PutObject", "DeleteObject"):
        yield Call(f"s3:{action}", f"{buckets['checkpoints']}/{own}/step-100.pt")
    for kind in ("ProcessingJobs", "TrainingJobs"):
        group = f"arn:aws:logs:{document['region']}:{document['account_id']}:log-group:/aws/sagemaker/{kind}"
        yield Call("logs:CreateLogGroup", group)
        yield Call("logs:DescribeLogStreams", f"{group}:log-stream:")
        for action in ("CreateLogStream", "PutLogEvents"):
            yield Call(f"logs:{action}", f"{group}:log-stream:{job}-{_RUN}-0/algo-1-1700000000")
        yield Call("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": f"/aws/sagemaker/{kind}"})
    yield Call("ecr:GetAuthorizationToken")
    for url in (document["repository_url"], request["AlgorithmSpecification"]["TrainingImage"].split(":")[0]):
        for action in ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer"):
            yield Call(f"ecr:{action}", _repository(url))
    yield from _in_a_network(request.get("VpcConfig"), document)
    yield from _with_keys(request["OutputDataConfig"].get("KmsKeyId"), request["ResourceConfig"].get("VolumeKmsKeyId"))
    if is_debugged(request):
        yield from of_a_debugger()


def is_debugged(request: dict[str, Any]) -> bool:
    """Whether a training job asks for a shell into its container."""
    return bool(request.get("RemoteDebugConfig", {}).get("EnableRemoteDebug"))


def of_a_debugger() -> list[Call]:
    """What the container of a job calls that is debugged from outside (developer guide, "Access a training
    container through AWS Systems Manager for remote debugging", IAM permissions)."""
    return [Call(f"ssmmessages:{verb}{noun}Channel") for verb in ("Create", "Open") for noun in ("Control", "Data")]


def of_a_step(request: dict[str, Any], document: dict[str, Any], job: str) -> Iterator[Call]:
    """What a processing step does with its data, in its network, and with its keys."""
    cluster = request["ProcessingResources"]["ClusterConfig"]
    yield from _in_a_network(request.get("NetworkConfig", {}).get("VpcConfig"), document)
    yield from _with_keys(request["ProcessingOutputConfig"].get("KmsKeyId"), cluster.get("VolumeKmsKeyId"))
    for given in request.get("ProcessingInputs", []):
        yield from _reading(given["S3Input"])
    where = f"arn:aws:s3:::{document['buckets']['artifacts']}/jobs/{job}/{job}-{_RUN}/processing/step/output/part-0"
    yield Call("s3:PutObject", where)
    yield Call("s3:GetObject", where)


def _reading(source: dict[str, Any]) -> Iterator[Call]:
    """A place in S3; that of a run's own step is known when it runs."""
    bucket, _, prefix = source.get("S3Uri", "").removeprefix("s3://").partition("/")
    if bucket:
        yield Call("s3:ListBucket", f"arn:aws:s3:::{bucket}", {"s3:prefix": prefix})
        yield Call("s3:GetObject", f"arn:aws:s3:::{bucket}/{prefix}train.py")


def of_an_engineer(document: dict[str, Any], job: str) -> list[Call]:
    """What start, watch, runs, diagnose, stop and size call, and the console's pages of a job, a run and its log."""
    region, account = document["region"], document["account_id"]
    name = f"sagefit-{document['name']}-{job}"
    machine = f"arn:aws:states:{region}:{account}:stateMachine:{name}"
    run = f"arn:aws:states:{region}:{account}:execution:{name}:{job}-{_RUN}"
    logs = [
        f"arn:aws:logs:{region}:{account}:log-group:/aws/sagemaker/{kind}:log-stream:"
        for kind in ("ProcessingJobs", "TrainingJobs")
    ]
    artifacts = f"arn:aws:s3:::{document['buckets']['artifacts']}"
    through_s3 = {"kms:ViaService": f"s3.{region}.amazonaws.com"}
    return [
        *(Call("kms:Decrypt", key, through_s3) for key in filter(None, [document["kms_key_arn"]])),
        Call("ssm:GetParameter", f"arn:aws:ssm:{region}:{account}:parameter/sagefit/{document['name']}"),
        Call("states:ListStateMachines"),
        *(Call(f"states:{action}", machine) for action in ("StartExecution", "ListExecutions", "DescribeStateMachine")),
        *(Call(f"states:{action}", run) for action in ("DescribeExecution", "GetExecutionHistory", "StopExecution")),
        Call("sagemaker:ListTrainingJobs"),
        Call("sagemaker:ListHyperParameterTuningJobs"),
        Call("sagemaker:DescribeHyperParameterTuningJob", tuning_job(document, job)),
        Call("sagemaker:ListTrainingJobsForHyperParameterTuningJob", tuning_job(document, job)),
        Call(
            "sagemaker:StopHyperParameterTuningJob",
            tuning_job(document, job),
            {"aws:ResourceTag/sagefit:platform": document["name"]},
        ),
        Call("sagemaker:ListProcessingJobs"),
        Call("sagemaker:DescribeProcessingJob", processing_job(document, job)),
        Call(
            "sagemaker:StopProcessingJob",
            processing_job(document, job),
            {"aws:ResourceTag/sagefit:platform": document["name"]},
        ),
        Call("sagemaker:DescribeTrainingJob", training_job(document, job)),
        Call(
            "sagemaker:StopTrainingJob",
            training_job(document, job),
            {"aws:ResourceTag/sagefit:platform": document["name"]},
        ),
        *(
            Call(f"logs:{action}", group)
            for group in logs
            for action in ("DescribeLogStreams", "FilterLogEvents", "GetLogEvents")
        ),
        Call("cloudwatch:GetMetricData"),
        Call("s3:ListBucket", artifacts, {"s3:prefix": f"jobs/{job}/"}),
        Call("s3:GetObject", f"{artifacts}/jobs/{job}/{job}-{_RUN}-0/output/output.tar.gz"),
    ]


def _in_a_network(network: dict[str, Any] | None, document: dict[str, Any]) -> Iterator[Call]:
    if network is None:
        return
    # Another account may own what it shares; interfaces in it are this account's.
    ec2, theirs = (
        f"arn:aws:ec2:{document['region']}:{account}" for account in (document["account_id"], "210987654321")
    )
    for noun in ("NetworkInterfaces", "Vpcs", "DhcpOptions", "Subnets", "SecurityGroups"):
        yield Call(f"ec2:Describe{noun}")
    interface = f"{ec2}:network-interface/eni-0123456789abcdef0"
    owners = (ec2, theirs)
    groups = [f"{owner}:security-group/{group}" for owner in owners for group in network["SecurityGroupIds"]]
    for subnet in (f"{owner}:subnet/{name}" for owner in owners for name in network["Subnets"]):
        for resource in (interface, subnet, *groups):
            yield Call("ec2:CreateNetworkInterface", resource)
        for action in (
            "CreateNetworkInterfacePermission",
            "DeleteNetworkInterface",
            "DeleteNetworkInterfacePermission",
        ):
            yield Call(f"ec2:{action}", interface, {"ec2:Subnet": subnet})


def _with_keys(*keys: str | None) -> Iterator[Call]:
    for key in filter(None, keys):
        for action in ("Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey"):
            yield Call(f"kms:{action}", key)
        yield Call("kms:CreateGrant", key, {"kms:GrantIsForAWSResource": "true"})


def _repository(url: str) -> str:
    host, _, name = url.partition("/")
    account, _, _, region, *_ = host.split(".")
    return f"arn:aws:ecr:{region}:{account}:repository/{name}"
