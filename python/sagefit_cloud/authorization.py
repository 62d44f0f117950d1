"""What roles and users may do: calls that their policies do not allow are refused here as AWS refuses them.

Judged are a role's inline and managed policies and its permissions boundary, and the policies of a user and of the
user's groups. Calls of the owner's key are not judged: whoever runs the embedded cloud owns it. Neither is a state
machine's role that this cloud does not know.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError
from moto.iam.models import ManagedPolicy, Role, User, iam_backends
from moto.sagemaker.models import sagemaker_backends
from moto.sts.models import sts_backends
from moto.utilities.utils import get_partition

from sagefit.documents import as_list
from sagefit.iam.evaluate import Call, Context, allows, allows_somewhere, applies, missing_keys, statements_of

Request = Mapping[str, Any]
_KINDS = {
    "TrainingJobName": "training-job",
    "HyperParameterTuningJobName": "hyper-parameter-tuning-job",
    "ProcessingJobName": "processing-job",
}
SAGEMAKER = "SageMaker"  # what SageMaker calls its sessions with a role
_TO_SAGEMAKER = {"iam:PassedToService": "sagemaker.amazonaws.com"}


def calls_of(action: str, request: Request, resource: str) -> Iterator[Call]:
    """What AWS asks IAM about for a call on the job ``resource``: the call, and what it does by the way."""
    if action in ("CreateTrainingJob", "CreateHyperParameterTuningJob", "CreateProcessingJob"):
        asked = request.get("TrainingJobDefinition", request)
        keys = processing_keys(request) if action == "CreateProcessingJob" else creation_keys(asked)
        yield Call(f"sagemaker:{action}", resource, keys)
        yield Call("iam:PassRole", asked["RoleArn"], _TO_SAGEMAKER)
        if request.get("Tags"):
            yield Call("sagemaker:AddTags", resource)
    else:
        period = _text(request.get("ResourceConfig", {}).get("KeepAlivePeriodInSeconds"))
        yield Call(f"sagemaker:{action}", resource, {} if period is None else {"sagemaker:KeepAlivePeriod": period})


def creation_keys(request: Request) -> Context:
    """The condition keys that the service makes of a request for a training job; what is not in it has no key.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html
    """
    resources, network = request["ResourceConfig"], request.get("VpcConfig", {})
    keys: dict[str, str | list[str] | None] = {
        "InstanceTypes": [each["InstanceType"] for each in resources.get("InstanceGroups") or [resources]],
        "MaxRuntimeInSeconds": _text(request["StoppingCondition"].get("MaxRuntimeInSeconds")),
        "KeepAlivePeriod": _text(resources.get("KeepAlivePeriodInSeconds")),
        "VolumeKmsKey": resources.get("VolumeKmsKeyId"),
        "OutputKmsKey": request["OutputDataConfig"].get("KmsKeyId"),
        "VpcSubnets": network.get("Subnets"),
        "VpcSecurityGroupIds": network.get("SecurityGroupIds"),
        "EnableRemoteDebug": _text(request.get("RemoteDebugConfig", {}).get("EnableRemoteDebug")),
        "NetworkIsolation": _text(request.get("EnableNetworkIsolation")),
        "InterContainerTrafficEncryption": _text(request.get("EnableInterContainerTrafficEncryption")),
    }
    return {f"sagemaker:{key}": value for key, value in keys.items() if value is not None}


def processing_keys(request: Request) -> Context:
    """The condition keys that the service makes of a request for a processing job: those of the same page."""
    return creation_keys(
        {
            "ResourceConfig": request["ProcessingResources"]["ClusterConfig"],
            "StoppingCondition": request.get("StoppingCondition", {}),
            "OutputDataConfig": request.get("ProcessingOutputConfig", {}),
            **request.get("NetworkConfig", {}),
        }
    )


def guard(role_arn: str, region: str) -> Callable[..., None]:
    """A handler of botocore's event before a call of SageMaker is built.

    It raises ClientError, as AWS answers, when IAM says no.
    """
    _, partition, _, _, account, _ = role_arn.split(":", 5)

    def refuse(params: Request, model: Any, **_: Any) -> None:
        if _policies(role_arn) is None:
            return
        field = next((name for name in _KINDS if name in params), None)
        if field is None:  # a list, which takes no resource
            calls = [Call(f"sagemaker:{model.name}", "*")]
        else:
            job = f"arn:{partition}:sagemaker:{region}:{account}:{_KINDS[field]}/{params[field]}"
            tags = tags_of_job(params, account, region)
            calls = [replace(call, context={**tags, **call.context}) for call in calls_of(model.name, params, job)]
        if why := denial(role_arn, calls):
            raise _error(why, model.name)

    return refuse


def tags_of_job(request: Request, account: str, region: str) -> Context:
    """The condition keys that the tags of the job are that a request names; a job that is not there yet has none."""
    backend: Any = sagemaker_backends[account][region]
    jobs = {
        "TrainingJobName": backend.training_jobs,
        "HyperParameterTuningJobName": backend.hyper_parameter_tuning_jobs,
        "ProcessingJobName": backend.processing_jobs,
    }
    job = next((jobs[field].get(request[field]) for field in jobs if field in request), None)
    return {f"aws:ResourceTag/{tag['Key']}": tag["Value"] for tag in getattr(job, "tags", [])}


def denial(role_arn: str, calls: Iterable[Call], session: str = "sagefit") -> str:
    """Why the first of some calls that a role may not make is refused; empty if it may make all.

    A call with the resource "" is judged by its action. A role that is gone may do nothing.
    """
    return _denial(_of_session(role_arn, session).name, _policies(role_arn) or [[]], calls)


def _of_session(role_arn: str, session: str) -> Caller:
    _, partition, _, _, account, _ = role_arn.split(":", 5)
    return Caller(f"arn:{partition}:sts::{account}:assumed-role/{role_arn.rpartition('/')[2]}/{session}", role_arn)


def denial_of_user(user: User, calls: Iterable[Call]) -> str:
    """The same of a user of IAM, with the policies of the user and of the user's groups."""
    return _denial(user.arn, [_documents_of(user)], calls)


@dataclass(frozen=True)
class Simulated:
    """What IAM's simulator says of a call: its decision, and the keys of conditions that the call would need."""

    decision: str
    missing: list[str]


def simulate(principal: str, call: Call) -> Simulated | None:
    """Judge a call of a user or a role as IAM's simulator does; None for one that is not there."""
    groups = _groups_of(principal)
    if groups is None:
        return None
    statements = [statement for group in groups for statement in statements_of(group)]
    missing = sorted({key for each in statements for key in missing_keys(each, call)})
    if any(not each.allows and applies(each, call) for each in statements):
        return Simulated("explicitDeny", missing)
    return Simulated("allowed" if all(allows(group, call) for group in groups) else "implicitDeny", missing)


def _groups_of(principal: str) -> list[list[dict[str, Any]]] | None:
    return _policies(principal) if ":role/" in principal else _policies_of_user(principal)


def _policies_of_user(arn: str) -> list[list[dict[str, Any]]] | None:
    _, partition, _, _, account, _ = arn.split(":", 5)
    users = list(iam_backends[account][partition].users.values())
    user = next((user for user in users if user.arn == arn), None)
    return None if user is None else [_documents_of(user)]


def _documents_of(user: User) -> list[dict[str, Any]]:
    """The policies of a user and of the user's groups."""
    backend = iam_backends[user.account_id][get_partition(user.region_name)]
    owners: list[Any] = [user, *(group for group in list(backend.groups.values()) if user in group.users)]
    own = [json.loads(text) for owner in owners for text in owner.policies.values()]
    return own + [json.loads(_document(policy)) for owner in owners for policy in owner.managed_policies.values()]


def _denial(who: str, groups: list[list[dict[str, Any]]], calls: Iterable[Call]) -> str:
    for call in calls:
        judge = allows if call.resource else allows_somewhere
        if not all(judge(group, call) for group in groups):
            return _denied(who, call)
    return ""


@dataclass(frozen=True)
class Caller:
    """Who makes a request: ``name`` is the ARN of a user or of a session, ``principal`` of the user or the role."""

    name: str
    principal: str


def caller_of(key: str, own_role: str | None = None, session: str = "sagefit") -> Caller | None:
    """Whose key that IAM or STS of this cloud handed out it is; None for another, such as the owner's.

    ``own_role`` is the role of a container's key.
    """
    if own_role:
        return _of_session(own_role, session)
    for partitions in list(sts_backends.values()):
        for tokens in list(partitions.values()):
            if found := tokens.get_assumed_role_from_access_key(key):
                return _of_session(found.role_arn, found.session_name)
    user = _user_of(key)
    return Caller(user.arn, user.arn) if user else None


def denial_of_key(key: str, calls: Iterable[Call]) -> str:
    """The same of a key that IAM or STS of this cloud handed out: that of a user, or of a session with a role."""
    if user := _user_of(key):
        return denial_of_user(user, calls)
    caller = caller_of(key)
    return denial(caller.principal, calls, caller.name.rpartition("/")[2]) if caller else ""


def _user_of(key: str) -> User | None:
    # moto makes STS's store when it is first called, and a user's key needs no such call.
    owners = [owner for owners in list(iam_backends.values()) for owner in list(owners.values())]
    return next(filter(None, (owner.get_user_from_access_key_id(key) for owner in owners)), None)


def denial_of_taking(request: Request, caller: Caller | None) -> str:
    """Why STS gives nobody a session with the role of an AssumeRole, or not this caller; empty if it does.

    The role must be there, and its trust policy must name the caller, or the caller's account: then the caller's own
    policies have to allow it too. The owner (None) stands for whoever a role trusts, such as a pipeline with its
    token: there it is asked only whether the role is there.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-basics-single-account.html
    """
    arn = request["RoleArn"]
    role = _role(arn)
    call = Call("sts:AssumeRole", arn)
    if caller is None:
        return "" if role else _not_given("the owner of the embedded cloud", call)
    _, partition, _, _, account, _ = caller.principal.split(":", 5)
    themselves = {"*", caller.name, caller.principal}
    context = {"aws:PrincipalArn": caller.principal, "aws:PrincipalAccount": account}
    if "ExternalId" in request:
        context["sts:ExternalId"] = request["ExternalId"]
    if role and _trusts(role, "AWS", themselves, context):
        said = simulate(caller.principal, call)
        return _not_given(caller.name, call) if said and said.decision == "explicitDeny" else ""
    theirs = {account, f"arn:{partition}:iam::{account}:root"}
    if role and _trusts(role, "AWS", themselves | theirs, context):
        return _denial(caller.name, _groups_of(caller.principal) or [[]], [call])
    return _not_given(caller.name, call)


def _not_given(who: str, call: Call) -> str:
    return f"User: {who} is not authorized to perform: {call.action} on resource: {call.resource}"


def may_assume(role_arn: str, service: str, region: str, source: str) -> bool:
    """Whether a service may assume a role for ``source``, the ARN of what it does it for."""
    role = _role(role_arn)
    names = {f"{service}.amazonaws.com", f"{service}.{region}.amazonaws.com"}
    context = {"aws:SourceAccount": source.split(":")[4], "aws:SourceArn": source}
    return role is not None and _trusts(role, "Service", names, context)


def _trusts(role: Role, kind: str, names: set[str], context: Context) -> bool:
    """Whether the trust policy of a role lets principals of a kind take it that have one of some names."""
    trust = json.loads(role.assume_role_policy_document)
    own = [
        {**statement, "Resource": "*"}
        for statement in as_list(trust.get("Statement", []))
        if names & set(as_list(_principal(statement).get(kind, [])))
    ]
    return allows([{"Version": "2012-10-17", "Statement": own}], Call("sts:AssumeRole", "*", context))


def _principal(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = statement.get("Principal", {})
    return found if isinstance(found, dict) else {"AWS": found}


def _policies(role_arn: str) -> list[list[dict[str, Any]]] | None:
    """Groups of policies that all have to allow a call: those of the role, and its boundary; None for no such role."""
    role = _role(role_arn)
    if role is None:
        return None
    backend = iam_backends[role.account_id][role.partition]
    own = [*role.policies.values(), *map(_document, role.managed_policies.values())]
    groups = [[json.loads(document) for document in own]]
    boundary = backend.managed_policies.get(role.permissions_boundary_arn or "")
    return [*groups, [json.loads(_document(boundary))]] if boundary else groups


def _role(arn: str) -> Role | None:
    _, partition, _, _, account, _ = arn.split(":", 5)
    return next((role for role in list(iam_backends[account][partition].roles.values()) if role.arn == arn), None)


def _document(policy: ManagedPolicy) -> str:
    return next(version.document for version in policy.versions if version.version_id == policy.default_version_id)


def _denied(who: str, call: Call) -> str:
    where = f" on resource: {call.resource}" if call.resource else ""
    return (
        f"User: {who} is not authorized to perform: {call.action}{where} because no identity-based policy allows the "
        f"{call.action} action"
    )


def _error(message: str, operation: str) -> ClientError:
    answer: Any = {
        "Error": {"Code": "AccessDeniedException", "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400, "RequestId": str(uuid.uuid4())},
    }
    return ClientError(answer, operation)


def _text(value: object) -> str | None:
    return None if value is None else str(value).lower()
