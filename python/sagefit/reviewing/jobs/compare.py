"""The jobs of a plan, before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from sagefit.documents import UNKNOWN, as_list
from sagefit.machine.definition import OWN_VARIABLE, Definition, is_ours, read_definition
from sagefit.planning import JobPlan
from sagefit.reviewing.jobs import cost, foreign, rules, supply
from sagefit.reviewing.jobs.asked import asked
from sagefit.reviewing.jobs.cost import Allowed, Cost, cost_of
from sagefit.reviewing.jobs.fit import Fit, described, fits
from sagefit.reviewing.jobs.starts import Schedules, Starts
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change, Plan
from sagefit.reviewing.references import References
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.values import first, will_be

_RUNS = re.compile(r"(?:^|\.)(?:(code)\.(?:entry_point|arguments)$|(environment|hyperparameters)\.)")
_JUDGED = ("create", "update", "replace", "no-op")
MAX_PRICE_TAG = "sagefit:max-price-usd"
_REGION_OF_ARN = re.compile(r"^arn:[\w-]+:\w+:([a-z]{2}(?:-[a-z]+)+-\d):")


@dataclass(frozen=True)
class Word:
    """A field of the job file that changes; a side is None where it does not stand there."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class JobReview:
    """One job of a plan. A side is None where the job is new, removed or cannot be read."""

    name: str
    change: Change
    before: Definition | None
    after: Definition | None
    region: str | None
    words: list[Word] = field(default_factory=list)
    fits_before: list[Fit] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    cost_before: Cost | None = None
    cost: Cost | None = None
    machine_changes: int = 0
    warm_pool: dict[str, str] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)


def review_jobs(plan: Plan, allowed: Allowed, job_plan: JobPlan | None = None) -> list[JobReview]:
    """All jobs that the plan touches.

    ``allowed``: what a job may cost and grow. ``job_plan``: of the one job of the plan, if not in ``jobs/``.
    """
    schedules = Schedules(plan.managed, References(plan.configuration))
    return [found for change in plan.managed if (found := _review(change, plan, schedules, allowed, job_plan))]


def foreign_hits(plan: Plan, allowed: Allowed) -> Iterator[tuple[str, Change, Hit]]:
    """Findings about state machines that train and are not Sagefit's. ``allowed``: what they may cost and grow."""
    schedules = Schedules(plan.managed, References(plan.configuration))
    for change in plan.managed:
        if change.type == "aws_sfn_state_machine" and change.kind in _JUDGED and not change.deposed:
            old, new = change.before.get("definition"), first(will_be(change, "definition"))
            starts = schedules.of(change)
            if is_ours(old) or is_ours(new) or (change.kind == "no-op" and starts[0] == starts[1]):
                continue
            for hit in foreign.judge(change, old, new, _region(change, None), starts, allowed):
                yield change.address, change, hit


def _review(
    change: Change, plan: Plan, schedules: Schedules, allowed: Allowed, job_plan: JobPlan | None
) -> JobReview | None:
    if change.type != "aws_sfn_state_machine" or change.kind in ("read", "forget") or change.deposed:
        return None
    starts = schedules.of(change)
    if change.kind == "no-op" and starts[0] == starts[1]:
        return None
    old, new = change.before.get("definition"), first(will_be(change, "definition"))
    if not is_ours(old) and not is_ours(new):
        return None
    before = read_definition(old)
    if change.kind == "delete":
        return _removed(change, before, starts[0])
    after = None if new is UNKNOWN else read_definition(new)
    region = _region(change, after or before)
    if after is None:
        why = (
            "its definition is known only after apply"
            if new is UNKNOWN
            else "its definition has another form than Sagefit's"
        )
        name = before.name if before else change.address
        return JobReview(name, change, before, None, region, hits=[Hit("job-unreadable", say(why), "high")])
    costs = cost_of(before, region, starts[0]) if before else None, cost_of(after, region, starts[1])
    judge = partial(fits, job_plan=described(after.name, job_plan))
    planned = judge(after)
    return JobReview(
        name=after.name,
        change=change,
        before=before,
        after=after,
        region=region,
        words=[*_words(before, after), *_told(change, starts)],
        fits_before=judge(before) if before else [],
        fits=planned,
        cost_before=costs[0],
        cost=costs[1],
        machine_changes=_machine_changes(before, after),
        warm_pool=_warm_pool(plan, after),
        hits=[
            *rules.judge(before, after, planned),
            *cost.judge(*costs, allowed),
            *cost.judge_limit(_max_price(change.before), _max_price(change.after), allowed.price_factor),
            *supply.judge(asked(old) if before else None, asked(new), supply.account_of(change)),
            *foreign.retries(_retries(before), _retries(after), allowed.runtime_factor if before else inf),
        ],
    )


def _retries(job: Definition | None) -> int:
    return int((job.words.get("resources.retry_attempts") if job else 0) or 0)


def _max_price(values: dict[str, Any]) -> float | None:
    """The job's own limit in USD, which modules/training-job writes as a tag."""
    try:
        return float((values.get("tags") or {})[MAX_PRICE_TAG])
    except (KeyError, TypeError, ValueError):
        return None


def _warm_pool(plan: Plan, job: Definition) -> dict[str, str]:
    """What the plan says of each attempt's way to kept instances; empty where the root has no such output."""
    output = plan.output_changes.get("warm_pool")
    told = output.after if output else None
    names = {attempt.name for attempt in job.attempts}
    return {str(key): str(text) for key, text in told.items() if key in names} if isinstance(told, dict) else {}


def _removed(change: Change, before: Definition | None, starts: Starts) -> JobReview | None:
    if before is None:
        return None
    region = _region(change, before)
    return JobReview(before.name, change, before, None, region, cost_before=cost_of(before, region, starts))


def _region(change: Change, definition: Definition | None) -> str | None:
    """Where the job runs: by the ARN of its log group, else by its image."""
    for values in (change.after, change.before):
        logging = as_list(values.get("logging_configuration"))
        for text in (
            first([each.get("log_destination") for each in logging if isinstance(each, dict)]),
            values.get("arn"),
        ):
            if found := _REGION_OF_ARN.match(str(text)):
                return found[1]
    return definition.region if definition else None


def _words(before: Definition | None, after: Definition) -> Iterator[Word]:
    if before is None:
        yield from (Word(word, None, after.words[word]) for word in _of_new(after.words))
        return
    order = {word: index for index, word in enumerate([*after.words, *before.words])}
    for word in sorted(order, key=lambda each: order[each]):
        old, new = before.words.get(word), after.words.get(word)
        if old != new and not word.endswith(".reason"):
            yield Word(word, old, new)


def _of_new(words: dict[str, Any]) -> list[str]:
    """What a new job runs and what it is told, the shortest lists first."""
    kinds: dict[str, list[str]] = {}
    for word, value in words.items():
        found = _RUNS.search(word)
        if found and value not in (None, [], "") and not word.endswith(f".{OWN_VARIABLE}"):
            kinds.setdefault(found[1] or found[2], []).append(word)
    return [word for kind in ("code", "environment", "hyperparameters") for word in kinds.get(kind, [])]


def _told(change: Change, starts: tuple[Starts, Starts]) -> Iterator[Word]:
    """Fields of the job file that are not in the definition: the schedule and the limit of the price."""
    if starts[0].text != starts[1].text:
        yield Word("schedule", starts[0].text, starts[1].text)
    limits = _max_price(change.before), _max_price(change.after)
    if limits[0] != limits[1]:
        yield Word("max_price", *limits)


def _machine_changes(before: Definition | None, after: Definition) -> int:
    """How many states differ that no word of the job file tells of; a new version of Sagefit changes them."""
    if before is None:
        return 0
    names = {each.name for side in (before, after) for each in (*side.attempts, *side.steps)} | {"processing"}
    return sum(
        before.shared.get(state) != after.shared.get(state)
        for state in {*before.shared, *after.shared}
        if state.partition(": ")[0] not in names and state not in ("again", "route", "named", "misnamed", "begin")
    )
