"""The rules: tables of data, and one small module for each kind of danger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sagefit.reviewing.plan import Change, Plan
from sagefit.reviewing.rulebook import SEVERITIES, Hit, Rule, Severity, place, rules
from sagefit.reviewing.rules import (
    access,
    alarms,
    attributes,
    drift,
    events,
    grants,
    lifecycles,
    network,
    planned,
    secrets,
    stateful,
    trust,
    uploads,
)
from sagefit.reviewing.rules.context import Context

__all__ = ["SEVERITIES", "Hit", "Rule", "Severity", "drift", "hits", "place", "rules"]

_OF_A_CHANGE = (
    planned.judge,
    stateful.judge,
    attributes.judge,
    access.judge,
    trust.judge,
    grants.judge,
    network.judge,
    alarms.judge,
    events.judge,
    secrets.judge,
    lifecycles.judge,
    uploads.judge,
)
_OF_A_PLAN = (planned.of_plan, secrets.outputs, drift.of_plan)


def hits(plan: Plan) -> Iterator[tuple[str, Change | None, Hit]]:
    """Everything that breaks a rule: what it is about, the change if it is one, and how."""
    for of_plan in _OF_A_PLAN:
        for about, hit in of_plan(plan):
            yield about, plan.by_address.get(about), hit
    context = Context(plan)
    for drifted in drift.staying(plan):
        for judge in _OF_A_CHANGE:
            for hit in judge(drifted, context):
                said = replace(hit.message, words=f"changed outside of Terraform: {hit.message.words}")
                yield drifted.address, drifted, replace(hit, message=said)
    for change in plan.resource_changes:
        if change.kind != "no-op":
            for judge in _OF_A_CHANGE:
                for hit in judge(change, context):
                    yield change.address, change, hit
