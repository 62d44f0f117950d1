"""Whether the caller may do what a plan, an apply and a run need: IAM's own simulator is asked.

``calls.json`` has the calls, each with the resources that it is made on and when a job needs it. It was taken from the
record of the embedded cloud; tests compare it with that record, and with the policies of ``examples/gitops/roles``.
What a state in S3 needs is from the manual of Terraform's backend; ``state.py`` asks for it.
https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from sagefit.doctor.account import Caller
from sagefit.doctor.asking import client, code_of
from sagefit.doctor.finding import Finding
from sagefit.job import Job
from sagefit.job.roles import has_own_role
from sagefit.platform import Platform

_CHECK = "permissions"
_ALLOWED = "allowed"
_GLOBAL_REGION = "us-east-1"  # where IAM lives, to conditions on regions
_SHOWN = 4  # actions that are named in a line
_TO_DO = {
    "plan": "the policy of examples/gitops/roles/plan.tf has all that a plan needs",
    "apply": "the policy of examples/gitops/roles/apply.tf has all that an apply needs",
    "run": "attach the policy in the platform's output engineer_policy_json",
}


@dataclass(frozen=True)
class Row:
    """Calls on the same resources: ``of`` a platform or a job, ``to`` plan, apply or run it; or ``of`` a state."""

    of: str
    to: str
    on: tuple[str, ...]
    actions: tuple[str, ...]
    context: Mapping[str, str]
    when: str


@cache
def rows() -> tuple[Row, ...]:
    """The table of calls."""
    read: list[dict[str, Any]] = json.loads(Path(__file__).with_name("calls.json").read_text(encoding="utf-8"))
    return tuple(
        Row(row["of"], row["to"], tuple(row["on"]), tuple(row["actions"]), row.get("context", {}), row.get("when", ""))
        for row in read
    )


def check_permissions(caller: Caller, name: str, platform: Platform | None, job: Job | None) -> Iterator[Finding]:
    """A finding for each of plan, apply and run: of the job, or of the platform ``name`` where there is no job."""
    simulator = Simulator.of(_CHECK, caller)
    if isinstance(simulator, Finding):
        yield simulator
        return
    known = _names(caller, name, platform, job)
    conditions = _conditions(platform, job)
    asked: dict[str, list[Row]] = defaultdict(list)
    for row in rows():
        if row.of == ("job" if job else "platform") and (not row.when or row.when in conditions):
            asked[row.to].append(row)
    what = f"job {job.name}" if job else f"platform {name}"
    boundary = platform.permissions_boundary_arn if platform else None
    for purpose, group in asked.items():
        answer = simulator.asked(group, known, boundary)
        to_do = f"{purpose} {what}"
        if answer.denied:
            fix = f"let {simulator.principal} make these calls; {_TO_DO[purpose]}"
            yield Finding(_CHECK, "fault", f"to {to_do} you lack {answer.lacking}", fix)
        else:
            yield Finding(_CHECK, "ok", f"you may make all {answer.count} calls to {to_do}{answer.unless}")


@dataclass(frozen=True)
class Answer:
    """What the simulator says of some calls. One that depends on what is not known here is no refusal."""

    count: int
    denied: tuple[str, ...]
    open_keys: tuple[str, ...]
    """The keys of conditions that are not known here."""

    @property
    def lacking(self) -> str:
        """The calls that are denied, the first few by name."""
        more = f" and {len(self.denied) - _SHOWN} more" if len(self.denied) > _SHOWN else ""
        return f"{', '.join(self.denied[:_SHOWN])}{more} ({len(self.denied)} of {self.count} calls)"

    @property
    def unless(self) -> str:
        """What an answer depends on, as the end of a sentence."""
        return f", where {', '.join(self.open_keys)} allow it" if self.open_keys else ""


@dataclass(frozen=True)
class Simulator:
    """IAM's simulator, which is asked about one user or role."""

    iam: Any
    principal: str
    """The ARN of the user or role."""

    @classmethod
    def of(cls, check: str, caller: Caller) -> Simulator | Finding:
        """The simulator for a caller; what ``check`` says instead where nothing is to be asked."""
        if caller.is_root:
            return Finding(check, "ok", "the root user of the account may do everything")
        iam = client("iam")
        principal = _principal(iam, caller)
        if principal is None:
            why = f"not asked: IAM's simulator knows users and roles, and {caller.arn} is neither"
            return Finding(check, "unknown", why, "ask as a user or a role")
        return cls(iam, principal)

    def asked(self, group: Sequence[Row], names: Mapping[str, str], boundary: str | None = None) -> Answer:
        """Whether the calls of some rows are allowed; ``names`` are what the table leaves open."""
        lacking = [found for row in group for found in _lacking(self.iam, self.principal, row, names, boundary)]
        return Answer(
            len({action for row in group for action in row.actions}),
            tuple(sorted({action for action, missing in lacking if not missing})),
            tuple(sorted({key for _, missing in lacking for key in missing})),
        )


def _principal(iam: Any, caller: Caller) -> str | None:
    """The ARN of the user or role behind a caller; a session has another one than its role, and no path."""
    service, rest = caller.arn.split(":")[2], caller.arn.split(":", 5)[5]
    if service == "iam" and rest.startswith("user/"):
        return caller.arn
    if service == "sts" and rest.startswith("assumed-role/"):
        role = rest.split("/")[1]
        try:
            return str(iam.get_role(RoleName=role)["Role"]["Arn"])
        except ClientError as error:
            if code_of(error) == "NoSuchEntity":
                raise
            return f"arn:{caller.partition}:iam::{caller.account}:role/{role}"  # right where the role has no path
    return None


def _names(caller: Caller, name: str, platform: Platform | None, job: Job | None) -> dict[str, str]:
    """What the table leaves open."""
    prefix = f"sagefit-{name}"
    return {
        "partition": caller.partition,
        "region": caller.region,
        "account": caller.account,
        "platform": name,
        "prefix": prefix,
        "job": job.name if job else "",
        "suffix": platform.global_suffix if platform else "",
        "data": platform.buckets.data if platform else f"{prefix}-{caller.account}-{caller.region}-data",
        "key": (platform.kms_key_arn if platform else None) or "",
    }


def _conditions(platform: Platform | None, job: Job | None) -> set[str]:
    """Which rows with a ``when`` this job needs."""
    if job is None:
        return set()
    own = platform is not None and platform.job_policy_arns is not None and has_own_role(job)
    needed = {
        "own role": own,
        "uploads": bool(job.uploads),
        "schedule": job.schedule is not None,
        "key": platform is not None and platform.kms_key_arn is not None,
    }
    return {name for name, holds in needed.items() if holds}


def _lacking(
    iam: Any, principal: str, row: Row, names: Mapping[str, str], boundary: str | None
) -> Iterator[tuple[str, list[str]]]:
    """The actions of a row that the simulator does not allow, each with the keys that it would need to know.

    For several resources an action has a result within its result for each of them (API reference, EvaluationResult).
    """
    context = {key: value.format_map(names) for key, value in row.context.items()}
    is_global = row.actions[0].startswith("iam:") and names["partition"] == "aws"
    context["aws:RequestedRegion"] = _GLOBAL_REGION if is_global else names["region"]
    if boundary:
        context["iam:PermissionsBoundary"] = boundary
    pages = iam.get_paginator("simulate_principal_policy").paginate(
        PolicySourceArn=principal,
        ActionNames=list(row.actions),
        ResourceArns=[arn.format_map(names) for arn in row.on],
        ContextEntries=[
            {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
            for key, value in context.items()
        ],
    )
    for page in pages:
        for result in page["EvaluationResults"]:
            for each in result.get("ResourceSpecificResults") or [result]:
                if each.get("EvalResourceDecision", each.get("EvalDecision")) != _ALLOWED:
                    yield str(result["EvalActionName"]), each.get("MissingContextValues", [])
