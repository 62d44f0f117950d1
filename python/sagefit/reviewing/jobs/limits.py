"""What the policies of a job hold because the job asks for it: that needs no decision of its own beside the job's.

A policy of modules/training-job follows from the job: it lets the machine create the job's own training jobs and no
others, in the form in which the definition asks for them, and lets the containers read what they are given. Where a
policy changes in exactly that way, the finding about the job says it already.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sagefit.iam import Lost
from sagefit.iam.policy import Conditions, Policy, Statement
from sagefit.machine.definition import Definition
from sagefit.planning import PlannedAttempt
from sagefit.reviewing.jobs.asked import Asked

_TRAINS = (frozenset({"sagemaker:createtrainingjob"}), frozenset({"sagemaker:createhyperparametertuningjob"}))
_PREPARES = (frozenset({"sagemaker:createprocessingjob"}),)
_OF_OWN_JOBS = frozenset(
    f"sagemaker:{call}"
    for call in (
        "addtags", "createtrainingjob", "describetrainingjob", "updatetrainingjob", "createprocessingjob",
        "describeprocessingjob", "createhyperparametertuningjob", "describehyperparametertuningjob",
        "listtrainingjobsforhyperparametertuningjob",
    )
)  # fmt: skip
_READS = frozenset({"s3:getobject", "s3:listbucket"})
_USES_KEYS = frozenset({"kms:decrypt", "kms:describekey", "kms:encrypt", "kms:generatedatakey"})
_LOOKS_AT_NETWORKS = frozenset(
    f"ec2:describe{noun}" for noun in ("dhcpoptions", "networkinterfaces", "securitygroups", "subnets", "vpcs")
)
_JOINS_NETWORKS = frozenset({"ec2:createnetworkinterface"})
_KEEPS_INTERFACES = frozenset(
    f"ec2:{call}"
    for call in ("createnetworkinterfacepermission", "deletenetworkinterface", "deletenetworkinterfacepermission")
)
_OPENS_A_SHELL = frozenset(
    f"ssmmessages:{verb}{what}channel" for verb in ("create", "open") for what in ("control", "data")
)
_JOB_ARN = re.compile(r"arn:[\w-]+:sagemaker:[^:]*:[^:]*:(?:training|processing|hyper-parameter-tuning)-job/([\w-]+)")
_EC2_ARN = re.compile(r"arn:[\w-]+:ec2:[^:*]+:[^:]*:(?:network-interface/\*|(?:subnet|security-group)/([\w-]+))")
_S3_ARN = re.compile(r"arn:[\w-]+:s3:::([a-z0-9.-]+)(?:/(.*?)\*?)?")
_SCHEDULED_NAME = 22
"""Characters of a job's name in the names of its scheduled runs, as modules/training-job cuts it."""


def follows(job: Definition, asked: Asked, lost: Lost) -> bool:
    """Whether a new grant is no more than what ``job``, whose definition asks for ``asked``, needs to run."""
    actions, resources, conditions = set(lost.actions), lost.resources, lost.statement.condition_keys
    if actions <= _OF_OWN_JOBS:
        names = [found[1] if (found := _JOB_ARN.match(text)) else "" for text in resources]
        own = (f"{job.name}-", job.name[:_SCHEDULED_NAME].rstrip("-") + "-")
        return all(name.startswith(own) for name in names)
    if actions <= _READS:
        return all(_is_read(text, asked) for text in resources)
    if actions <= _USES_KEYS or (actions == {"kms:creategrant"} and "kms:grantisforawsresource" in conditions):
        return all(text in asked.keys for text in resources)
    if actions == {"iam:passrole"} and "iam:passedtoservice" in conditions:
        return all(text in asked.roles for text in resources)
    if actions <= _OPENS_A_SHELL:
        return bool(job.words.get("resources.remote_debug"))
    return _is_own_network(job, actions, lost)


def _is_own_network(job: Definition, actions: set[str], lost: Lost) -> bool:
    """Whether a grant is what a job needs in the subnets and groups that its definition names."""
    named = {*(job.words.get("resources.subnet_ids") or ()), *(job.words.get("resources.security_group_ids") or ())}
    if actions <= _LOOKS_AT_NETWORKS:
        return bool(named)
    places = set(lost.resources)
    if actions <= _KEEPS_INTERFACES:
        subnets = {text for _, key, values in lost.statement.conditions if key == "ec2:subnet" for text in values}
        if not subnets:
            return False
        places |= subnets
    elif not actions <= _JOINS_NETWORKS:
        return False
    found = [_EC2_ARN.fullmatch(text) for text in places]
    return bool(named) and all(each and (each[1] is None or each[1] in named) for each in found)


def _is_read(arn: str, asked: Asked) -> bool:
    """Whether the definition names the place in S3, or something in the bucket for the bucket itself."""
    found = _S3_ARN.fullmatch(arn)
    if found is None:
        return False
    bucket, path = found[1], found[2]
    if path is None:
        return bucket in asked.inputs | asked.outputs
    places = [uri.partition("/")[2] for uri in asked.locations if uri.partition("/")[0] == bucket]
    return any(path.startswith(place.rstrip("/")) for place in places if place)


def with_limits_of(job: Definition, before: Policy, after: Policy) -> Policy:
    """``before`` with the limits of ``after``, where those are exactly what attempts and steps of ``job`` need.

    Instance types, runtime, keep-alive and the protections of the requests are limits of the job itself; all other
    conditions are compared as they are.
    """
    moved = before
    for actions, needing in ((_TRAINS, job.attempts), (_PREPARES, job.steps)):
        moved = _with_limits(actions, _needed(job, needing), moved, after) if needing else moved
    return moved


_Actions = tuple[frozenset[str], ...]
_Needed = dict[str, frozenset[str] | None]


def _with_limits(actions: _Actions, needed: _Needed, before: Policy, after: Policy) -> Policy:
    allowing = [statement for statement in after.allowing if _creates(statement, actions)]
    new = frozenset(limit for statement in allowing for limit in statement.conditions if limit[1] in needed)
    values = [limit for limit in new if limit[0] != "null"]
    if not allowing or any(of_key != needed[key] for _, key, of_key in values):
        return before
    return Policy(
        tuple(_moved(each, new, needed) if _creates(each, actions) else each for each in before.statements),
        before.whole,
    )


def _creates(statement: Statement, actions: _Actions) -> bool:
    return statement.allows and statement.actions.patterns in actions and not statement.actions.but


def _moved(statement: Statement, new: Conditions, needed: _Needed) -> Statement:
    """``statement`` with the values of ``new``; a condition that the job does not need any more is left out."""
    kept = set()
    for condition in statement.conditions:
        operator, key, _ = condition
        if operator == "null" and key == "sagemaker:instancetypes" and needed.get("groups"):
            continue
        if key in needed and operator != "null":
            same = [limit for limit in new if limit[:2] == (operator, key)]
            if same or needed[key] is not None:
                kept.add(same[0] if same else condition)
        elif key not in needed or needed[key] is not None:
            kept.add(condition)
    return replace(statement, conditions=frozenset(kept))


def _needed(job: Definition, needing: Sequence[PlannedAttempt]) -> _Needed:
    """What attempts or steps ask for, by key as the policy writes it; None for what they do not ask for."""
    words = job.words
    longest = max(attempt.max_runtime_seconds for attempt in needing)
    kept = max(attempt.keep_alive_seconds for attempt in needing)
    return {
        "sagemaker:instancetypes": frozenset(each.instance_type for attempt in needing for each in attempt.instances),
        "sagemaker:maxruntimeinseconds": frozenset({str(longest)}),
        "sagemaker:keepaliveperiod": frozenset({str(kept)}),
        "sagemaker:networkisolation": _if(words.get("resources.network_isolation")),
        "sagemaker:intercontainertrafficencryption": _if(words.get("resources.encrypt_inter_container_traffic")),
        "sagemaker:enableremotedebug": frozenset({"true" if words.get("resources.remote_debug") else "false"}),
        "sagemaker:vpcsubnets": frozenset(words.get("resources.subnet_ids") or ()) or None,
        "sagemaker:vpcsecuritygroupids": frozenset(words.get("resources.security_group_ids") or ()) or None,
        "sagemaker:outputkmskey": frozenset({key}) if (key := words.get("resources.output_kms_key_arn")) else None,
        "groups": frozenset({"yes"}) if any(attempt.instance_groups for attempt in needing) else None,
    }


def _if(asked: object) -> frozenset[str] | None:
    return frozenset({"true"}) if asked else None
