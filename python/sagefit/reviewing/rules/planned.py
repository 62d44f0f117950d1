"""What is dangerous about a plan as a whole, and what its changes have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.reviewing.message import say
from sagefit.reviewing.plan import UNKNOWN_KIND, Change, Plan
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context

THE_PLAN = "(the plan)"


def of_plan(plan: Plan) -> Iterator[tuple[str, Hit]]:
    """Findings about the plan itself, with what they are about."""
    if plan.errored:
        yield THE_PLAN, Hit("plan-errored", say("Terraform ended with an error and the plan cannot be applied"))
    elif plan.complete is False:
        yield (
            THE_PLAN,
            Hit("plan-incomplete", say("the plan is not complete: made with -target or -exclude, or deferred")),
        )
    if plan.lists_nothing and not plan.errored:
        words = "{} resources, and no word of what happens to them"
        yield THE_PLAN, Hit("plan-unlisted", say(words, len(plan.known_addresses)))
    if plan.deferred_changes:
        yield THE_PLAN, Hit("plan-deferred", say("{} changes are put off to a later plan", len(plan.deferred_changes)))
    for check in plan.checks:
        yield from _failed(check)


def _failed(check: Any) -> Iterator[tuple[str, Hit]]:
    if not isinstance(check, dict) or check.get("status") not in ("fail", "error"):
        return
    address = check.get("address")
    name = str(address.get("to_display")) if isinstance(address, dict) else THE_PLAN
    instances = [each for each in check.get("instances") or [] if isinstance(each, dict)]
    problems = [p.get("message") for each in instances for p in each.get("problems") or [] if isinstance(p, dict)]
    yield name, Hit("check-failed", say("{}", "; ".join(str(problem) for problem in problems) or "no message"))


def judge(change: Change, context: Context) -> Iterator[Hit]:
    """Actions that are not known, and programs that run."""
    if change.kind == UNKNOWN_KIND:
        yield Hit("plan-unknown-action", say("actions: {}", change.change.actions))
    if change.kind in ("create", "replace") and (kinds := context.references.provisioners(change.address)):
        yield Hit("runs-code", say("provisioners: {}", sorted(set(kinds))))
    elif change.kind == "delete" and "local-exec" in context.references.provisioners(change.address):
        yield Hit("runs-code", say("its provisioners may run when it is destroyed"), "low")
    if change.mode == "data" and change.type == "external":
        yield Hit("runs-code", say("the data source runs a program"))
