"""What a plan takes from runs in progress.

A run keeps the definition that it started with, and with it the files, roles and rights that this definition names
(UpdateStateMachine: "Running executions will continue to use the previous definition and roleArn"). Everything else is
changed at once: files and roles are gone, and the next call is judged by the policies as they are then. Of a state
machine that is deleted, executions end at their next transition (DeleteStateMachine).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sagefit.iam import Lost, Policy, Statement, read_policy, widened

_GOES = frozenset({"replace", "delete"})
_CHANGES = frozenset({*_GOES, "update"})
# By type, the actions that may take something; what they do take, only their values say.
_MAY_TAKE = {
    "aws_sfn_state_machine": _GOES,
    "aws_s3_object": _GOES,
    "aws_s3_bucket": _GOES,
    "aws_ecr_repository": _GOES,
    "aws_kms_key": _CHANGES,
    "aws_s3_bucket_policy": _CHANGES,
    "aws_iam_role": _CHANGES,
    "aws_iam_role_policy": _CHANGES,
    "aws_iam_policy": _CHANGES,
    "aws_iam_role_policy_attachment": _CHANGES,
}
_TYPE = re.compile(r"(?:^|\.)(?P<type>aws_\w+)\.")
# The role of a schedule only starts runs. What clears up after runs is none of theirs.
_NOT_OF_RUNS = re.compile(r"(?:^|\.)module\.run_cleanup[.\[]|\.aws_iam_role(?:_policy)?\.schedule(?:\[|$)")
_CONTAINERS = {"aws_s3_bucket": ("bucket", "bucket"), "aws_ecr_repository": ("repository", "name")}
_MOST = 3
"""Of one kind, how many are named."""


def may_take(changes: Iterable[tuple[str, Sequence[str]]]) -> bool:
    """Whether changes, by address with their actions, may take something from a run; `taken` says what they do take."""
    return any(
        not _NOT_OF_RUNS.search(address)
        and (found := _TYPE.search(address)) is not None
        and not _MAY_TAKE.get(found["type"], frozenset()).isdisjoint(actions)
        for address, actions in changes
    )


def taken(planned: Mapping[str, Any]) -> list[str]:
    """What a plan takes from runs in progress, in words; ``planned`` is the JSON of ``terraform show`` for it.

    A policy counts where it no longer allows what it did, or where it is known only after the apply. One that allows
    more does not.
    """
    changes = [
        _Change.of(each)
        for each in planned.get("resource_changes", [])
        if each.get("mode", "managed") == "managed" and not _NOT_OF_RUNS.search(each["address"])
    ]
    if any(change.goes for change in changes if change.type == "aws_sfn_state_machine"):
        return ["the state machine that runs it"]  # all else goes with it
    gone = [change for change in changes if change.goes]
    roles = sorted(str(change.before["name"]) for change in gone if change.type == "aws_iam_role")
    files = sum(change.type == "aws_s3_object" for change in gone)
    told = [f"files of its code or data ({files})"] if files else []
    told += [f"{noun} {change.before[name]}" for change in gone for noun, name in _container(change)]
    told += [f"key {change.before.get('arn')}" for change in gone if change.type == "aws_kms_key"]
    told += [f"role {name}" for name in roles]
    told += _attachments(changes, roles)
    for owner, rights in _rights(changes).items():
        if owner.removeprefix("role ") not in roles:
            told += [f"{owner}: {words}" for words in rights.lost()]
    return told


@dataclass(frozen=True)
class _Change:
    """One resource of a plan, those that stay as they are included."""

    type: str
    before: dict[str, Any]
    after: dict[str, Any]
    unknown: dict[str, Any]
    goes: bool

    @classmethod
    def of(cls, change: Mapping[str, Any]) -> _Change:
        inner = change["change"]
        before, after, unknown = (inner.get(part) or {} for part in ("before", "after", "after_unknown"))
        return cls(change["type"], before, after, unknown, "delete" in inner["actions"])


@dataclass
class _Rights:
    """The statements of all policies of one owner, before and after."""

    before: list[Statement] = field(default_factory=list)
    after: list[Statement] = field(default_factory=list)
    known: bool = True

    def add(self, change: _Change, attribute: str) -> None:
        """Add the policy in ``attribute`` of ``change``."""
        self.before += _statements(change.before.get(attribute))
        if change.unknown.get(attribute) is True:
            self.known = False
        else:
            self.after += _statements(change.after.get(attribute))

    def lost(self) -> Iterator[str]:
        """What is no longer allowed, in words."""
        if not self.known:
            yield "what it allows is known only after the apply"
            return
        old, new = Policy(tuple(self.before)), Policy(tuple(self.after))
        yield from _some([_words(lost, new) for lost in widened(new, old)])


def _rights(changes: Iterable[_Change]) -> dict[str, _Rights]:
    """By owner: the policies of a role are read together, because a right may move from one to another."""
    found: dict[str, _Rights] = {}
    for change in changes:
        for owner, attribute in _policies(change):
            found.setdefault(owner, _Rights()).add(change, attribute)
    return found


def _policies(change: _Change) -> Iterator[tuple[str, str]]:
    """Whose policies a resource has, and in which attribute."""
    one = change.before or change.after
    if change.type == "aws_iam_role_policy":
        yield f"role {one.get('role')}", "policy"
    elif change.type == "aws_iam_policy":
        yield f"policy {one.get('name')}", "policy"
    elif change.type == "aws_s3_bucket_policy":
        yield f"policy of bucket {one.get('bucket')}", "policy"
    elif change.type == "aws_kms_key" and not change.goes:
        yield f"policy of key {one.get('arn')}", "policy"
    elif change.type == "aws_iam_role" and change.before and not change.goes:
        yield f"trust of role {one.get('name')}", "assume_role_policy"


def _statements(value: Any) -> tuple[Statement, ...]:
    policy = read_policy(value)
    return policy.statements if policy else ()


def _attachments(changes: Sequence[_Change], gone: Sequence[str]) -> list[str]:
    """Policies that a role which stays no longer has, and boundaries that it gets."""
    attached = [change for change in changes if change.type == "aws_iam_role_policy_attachment"]
    pairs = [{(each.get("role"), each.get("policy_arn")) for each in side} for side in _sides(attached)]
    told = [f"policy {arn} of role {role}" for role, arn in sorted(pairs[0] - pairs[1], key=str) if role not in gone]
    for change in changes:
        if change.type == "aws_iam_role" and change.before and not change.goes:
            name, boundary = "permissions_boundary", change.after.get("permissions_boundary")
            if change.unknown.get(name) is True or (boundary and boundary != change.before.get(name)):
                told.append(f"role {change.before['name']}: what its new boundary {boundary or ''} does not allow")
    return told


def _sides(changes: Sequence[_Change]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return [change.before for change in changes if change.before], [change.after for change in changes if change.after]


def _container(change: _Change) -> Iterator[tuple[str, str]]:
    if change.type in _CONTAINERS:
        yield _CONTAINERS[change.type]


def _words(lost: Lost, new: Policy) -> str:
    """One right that is gone: its actions, and where it is only bound more tightly, by which keys."""
    actions = ", ".join(lost.actions[:_MOST]) + (", ..." if len(lost.actions) > _MOST else "")
    if not lost.statement.allows:
        return f"a denial of {actions}"
    if lost.condition:
        left = {condition for statement in new.allowing for condition in statement.conditions}
        keys = sorted({key for _, key, _ in lost.statement.conditions - left})
        return f"{actions} under other conditions" + (f" ({', '.join(keys)})" if keys else "")
    return f"{actions} on {', '.join(lost.resources[:_MOST])}" + (", ..." if len(lost.resources) > _MOST else "")


def _some(texts: Sequence[str]) -> list[str]:
    more = len(texts) - _MOST
    return [*texts[:_MOST], *([f"{more} more rights"] if more > 1 else texts[_MOST:])]
