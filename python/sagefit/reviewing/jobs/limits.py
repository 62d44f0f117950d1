"""Limits in a job's role that follow from its attempts and steps: they change with the job, which is reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sagefit.iam.policy import Conditions, Policy, Statement
from sagefit.machine.definition import Definition
from sagefit.planning import PlannedAttempt

_TRAINS = (frozenset({"sagemaker:createtrainingjob"}), frozenset({"sagemaker:createhyperparametertuningjob"}))
_PREPARES = (frozenset({"sagemaker:createprocessingjob"}),)


def with_limits_of(job: Definition, before: Policy, after: Policy) -> Policy:
    """``before`` with the limits of ``after``, where those are exactly what attempts and steps of ``job`` need.

    Instance types, runtime and keep-alive are limits of the job itself; all other conditions are compared as they are.
    """
    moved = before
    for actions, needing in ((_TRAINS, job.attempts), (_PREPARES, job.steps)):
        moved = _with_limits(actions, needing, moved, after) if needing else moved
    return moved


_Actions = tuple[frozenset[str], ...]


def _with_limits(actions: _Actions, needing: Sequence[PlannedAttempt], before: Policy, after: Policy) -> Policy:
    allowing = [statement for statement in after.allowing if _creates(statement, actions)]
    new = frozenset(limit for statement in allowing for limit in _limits(statement.conditions))
    if not new or any(values != _needed(needing).get(key) for _, key, values in new):
        return before
    return Policy(
        tuple(_moved(each, new) if _creates(each, actions) else each for each in before.statements), before.whole
    )


def _creates(statement: Statement, actions: _Actions) -> bool:
    return statement.allows and statement.actions.patterns in actions and not statement.actions.but


def _limits(conditions: Conditions) -> Conditions:
    return frozenset(c for c in conditions if c[1] in _KEYS and c[0] != "null")


def _moved(statement: Statement, new: Conditions) -> Statement:
    old = _limits(statement.conditions)
    known = {(operator, key) for operator, key, _ in old}
    moved = frozenset(limit for limit in new if limit[:2] in known)
    return replace(statement, conditions=(statement.conditions - old) | moved)


_KEYS = ("sagemaker:instancetypes", "sagemaker:maxruntimeinseconds", "sagemaker:keepaliveperiod")


def _needed(needing: Sequence[PlannedAttempt]) -> dict[str, frozenset[str]]:
    """What attempts or steps ask for, as the policy writes it."""
    types = frozenset(each.instance_type for attempt in needing for each in attempt.instances)
    longest = max(attempt.max_runtime_seconds for attempt in needing)
    kept = max(attempt.keep_alive_seconds for attempt in needing)
    return dict(zip(_KEYS, (types, frozenset({str(longest)}), frozenset({str(kept)})), strict=True))
