"""What IAM is asked about for a request to a service other than S3: each action with its resource.

The Service Authorization Reference says which resource an action takes, and which other actions a call needs; a test
compares. A request that names nothing of the table is about no resource, which IAM writes as ``*``.
https://docs.aws.amazon.com/service-authorization/latest/reference/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moto.iam.models import iam_backends
from moto.kms.models import kms_backends

from sagefit.documents import as_list
from sagefit.iam.evaluate import Call, Context
from sagefit_cloud.authorization import tags_of_job
from sagefit_cloud.rules import Place

Request = Mapping[str, Any]
FREE = ("sts:GetCallerIdentity",)  # needs no permission
#: What the parameters of a request name, by service: the rest of an ARN after the account, or a whole ARN ("").
_NAMED: dict[str, dict[str, str]] = {
    "cloudwatch": {
        "AlarmName": "alarm:{}",
        "AlarmNames": "alarm:{}",
        "DashboardName": "dashboard/{}",
        "DashboardNames": "dashboard/{}",
        "ResourceARN": "",
    },
    "ecr": {"repositoryName": "repository/{}", "repositoryNames": "repository/{}", "resourceArn": ""},
    "events": {"Rule": "rule/{}", "Name": "rule/{}", "ResourceARN": ""},
    "logs": {"logGroupName": "log-group:{}", "resourceArn": ""},
    "sagemaker": {
        "TrainingJobName": "training-job/{}",
        "HyperParameterTuningJobName": "hyper-parameter-tuning-job/{}",
        "ProcessingJobName": "processing-job/{}",
        "ResourceArn": "",
    },
    "sns": {"TopicArn": "", "ResourceArn": "", "Name": "{}"},
    "ssm": {"Name": "parameter{}", "Names": "parameter{}", "ResourceId": "parameter{}"},
    "states": {"stateMachineArn": "", "executionArn": "", "resourceArn": "", "name": "stateMachine:{}"},
    "sts": {"RoleArn": ""},
}
_WITHOUT_REGION = ("dashboard/{}",)
_PASSED = {"states": "roleArn", "scheduler": "Target", "events": "Targets"}
# What a call that tags as it makes something is asked for too.
_TAGGING = {
    "cloudwatch:PutMetricAlarm": ("Tags", "TagResource"),
    "ecr:CreateRepository": ("tags", "TagResource"),
    "events:PutRule": ("Tags", "TagResource"),
    "iam:CreatePolicy": ("Tags", "TagPolicy"),
    "iam:CreateRole": ("Tags", "TagRole"),
    "kms:CreateKey": ("Tags", "TagResource"),
    "logs:CreateLogGroup": ("tags", "TagResource"),
    "sagemaker:CreateHyperParameterTuningJob": ("Tags", "AddTags"),
    "sagemaker:CreateProcessingJob": ("Tags", "AddTags"),
    "sagemaker:CreateTrainingJob": ("Tags", "AddTags"),
    "sns:CreateTopic": ("Tags", "TagResource"),
    "ssm:PutParameter": ("Tags", "AddTagsToResource"),
    "states:CreateStateMachine": ("tags", "TagResource"),
}
_STREAM = ("CreateLogStream", "GetLogEvents", "PutLogEvents")
_STREAMS = ("DescribeLogStreams", "FilterLogEvents")
_DELIVERY = ("CreateLogDelivery", "DescribeResourcePolicies", "ListLogDeliveries", "PutResourcePolicy")


def calls_of(service: str, operation: str, request: Request, place: Place) -> Iterator[Call]:
    """The calls of a request, its own first; ``service`` is the name that IAM has for it."""
    action = f"{service}:{operation}"
    if action in FREE:
        return
    calls = list(_own(service, operation, request, place))
    yield from calls
    field, tagging = _TAGGING.get(action, ("", ""))
    if field and request.get(field):
        yield from (Call(f"{service}:{tagging}", call.resource, call.context) for call in calls[:1])
    for role in _roles_passed(service, request):
        yield Call("iam:PassRole", role, {"iam:PassedToService": f"{service}.amazonaws.com"})
    yield from _by_the_way(action, request, place)


def _own(service: str, operation: str, request: Request, place: Place) -> Iterator[Call]:
    action = f"{service}:{operation}"
    if service == "iam":
        yield from _of_iam(action, request, place)
    elif service == "kms":
        yield from _of_kms(action, request, place)
    elif service == "scheduler":
        named = [f"schedule/{request.get('GroupName', 'default')}/{request['Name']}"] if "Name" in request else []
        yield from (Call(action, resource) for resource in [_arn(service, rest, place) for rest in named] or ["*"])
    else:
        context: Context = {"cloudwatch:namespace": str(request["Namespace"])} if operation == "PutMetricData" else {}
        if service == "sagemaker":
            context = tags_of_job(request, place.account, place.region)
        yield from (Call(action, resource, context) for resource in _resources(service, operation, request, place))


def _resources(service: str, operation: str, request: Request, place: Place) -> list[str]:
    found = []
    for field, rest in _NAMED.get(service, {}).items():
        for name in as_list(request.get(field, [])):
            if not rest:
                found.append(str(name).removesuffix(":*"))
            elif service == "logs":
                found.append(_arn(service, rest.format(name) + _stream(operation, request), place))
            else:
                own = str(name).lower() if service == "sagemaker" else name
                found.append(_arn(service, rest.format(own), place, regional=rest not in _WITHOUT_REGION))
        if found:  # the first that is there says it: PutRule has a Name, PutTargets a Rule
            return found
    return ["*"]


def _stream(operation: str, request: Request) -> str:
    if operation in _STREAM:
        return f":log-stream:{request['logStreamName']}"
    return ":log-stream:" if operation in _STREAMS else ""


def _arn(service: str, rest: str, place: Place, *, regional: bool = True) -> str:
    return f"arn:{place.partition}:{service}:{place.region if regional else ''}:{place.account}:{rest}"


def _of_iam(action: str, request: Request, place: Place) -> Iterator[Call]:
    backend = iam_backends[place.account][place.partition]
    start = f"arn:{place.partition}:iam::{place.account}"
    if "RoleName" in request:
        role = next((role for role in list(backend.roles.values()) if role.name == request["RoleName"]), None)
        path = role.path if role else request.get("Path", "/")
        boundary = role.permissions_boundary_arn if role else request.get("PermissionsBoundary")
        context = {"iam:PermissionsBoundary": str(boundary)} if boundary else {}
        yield Call(action, f"{start}:role{path}{request['RoleName']}", context)
    elif "PolicyArn" in request:
        yield Call(action, request["PolicyArn"])
    elif "PolicyName" in request:
        yield Call(action, f"{start}:policy{request.get('Path', '/')}{request['PolicyName']}")
    else:
        yield Call(action, request.get("PolicySourceArn") or request.get("OpenIDConnectProviderArn", "*"))


def _of_kms(action: str, request: Request, place: Place) -> Iterator[Call]:
    tags = {f"aws:RequestTag/{tag['TagKey']}": str(tag["TagValue"]) for tag in request.get("Tags", [])}
    if "AliasName" in request:
        yield Call(action, _arn("kms", request["AliasName"], place))
        target = request.get("TargetKeyId") or request["AliasName"]
        yield from (Call(action, key, own) for key, own in [key_of(target, place)] if key)
    elif "KeyId" in request:
        key, own = key_of(request["KeyId"], place)
        yield Call(action, key or "*", {**own, **tags})
    else:
        yield Call(action, "*", tags)


def key_of(name: str, place: Place) -> tuple[str, dict[str, str]]:
    """The ARN of a key that is named by id, ARN or alias, and its tags as keys of conditions; "" for no such key."""
    backend = kms_backends[place.account][place.region]
    try:
        key = backend.keys[backend.any_id_to_key_id(name)]
    except Exception:  # moto has several errors for a key that is not there
        return "", {}
    tags = backend.list_resource_tags(key.id).get("Tags", [])
    return key.arn, {f"aws:ResourceTag/{tag['TagKey']}": str(tag["TagValue"]) for tag in tags}


def key_use(
    actions: str, key: str, service: str, place: Place, more: Mapping[str, str] | None = None
) -> Iterator[Call]:
    """Use of a key by a service on behalf of the caller; none of a key that AWS manages."""
    arn, tags = key_of(key, place)
    if arn and "alias/aws/" not in key:
        via = {"kms:ViaService": f"{service}.{place.region}.amazonaws.com"}
        yield from (Call(f"kms:{action}", arn, {**tags, **via, **(more or {})}) for action in actions.split())


def _roles_passed(service: str, request: Request) -> list[str]:
    given = request.get(_PASSED.get(service, ""), [])
    roles = [given] if isinstance(given, str) else [each.get("RoleArn") for each in as_list(given)]
    return [role for role in roles if role]


def _by_the_way(action: str, request: Request, place: Place) -> Iterator[Call]:
    """What a service does in the name of the caller."""
    if action in ("states:CreateStateMachine", "states:UpdateStateMachine"):
        if request.get("loggingConfiguration", {}).get("level", "OFF") != "OFF":
            yield from (Call(f"logs:{name}") for name in _DELIVERY)
    elif action == "ecr:CreateRepository":
        if key := request.get("encryptionConfiguration", {}).get("kmsKey"):
            yield from key_use("CreateGrant", key, "ecr", place, {"kms:GrantIsForAWSResource": "true"})
    elif action in ("scheduler:CreateSchedule", "scheduler:UpdateSchedule") and (key := request.get("KmsKeyArn")):
        yield from key_use("GenerateDataKey Decrypt", key, "scheduler", place)
