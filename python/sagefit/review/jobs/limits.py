"""Limits that the role of a job takes from its attempts: they move with the job, and the job is what is reviewed."""

from __future__ import annotations

from dataclasses import replace

from sagefit.review.iam.policy import Conditions, Policy, Statement
from sagefit.review.jobs.definition import Definition

_CREATES = (frozenset({"sagemaker:createtrainingjob"}), frozenset({"sagemaker:createhyperparametertuningjob"}))


def with_limits_of(job: Definition, before: Policy, after: Policy) -> Policy:
    """``before`` with the limits of ``after``, where those are exactly what the attempts of ``job`` need.

    Instance types, runtime and keep-alive are limits of the job itself; all other conditions are compared as they are.
    """
    new = [limit for statement in after.allowing if _creates(statement) for limit in _limits(statement.conditions)]
    if not new or any(values != _needed(job).get(key) for _, key, values in new):
        return before
    return Policy(
        tuple(_moved(each, frozenset(new)) if _creates(each) else each for each in before.statements), before.whole
    )


def _creates(statement: Statement) -> bool:
    return statement.allows and statement.actions.patterns in _CREATES and not statement.actions.but


def _limits(conditions: Conditions) -> Conditions:
    return frozenset(c for c in conditions if c[1] in _KEYS and c[0] != "null")


def _moved(statement: Statement, new: Conditions) -> Statement:
    old = _limits(statement.conditions)
    known = {(operator, key) for operator, key, _ in old}
    moved = frozenset(limit for limit in new if limit[:2] in known)
    return replace(statement, conditions=(statement.conditions - old) | moved)


_KEYS = ("sagemaker:instancetypes", "sagemaker:maxruntimeinseconds", "sagemaker:keepaliveperiod")


def _needed(job: Definition) -> dict[str, frozenset[str]]:
    """What the attempts ask for, as the policy writes it."""
    types = frozenset(each.instance_type for attempt in job.attempts for each in attempt.instances)
    longest = max(attempt.max_runtime_seconds for attempt in job.attempts)
    kept = max(attempt.keep_alive_seconds for attempt in job.attempts)
    return dict(zip(_KEYS, (types, frozenset({str(longest)}), frozenset({str(kept)})), strict=True))
