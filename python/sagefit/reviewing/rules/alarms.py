"""Whether an alarm still works: its threshold, its evaluation periods, and its recipients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sagefit.documents import UNKNOWN, as_list
from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.values import first, was, will_be

_ALARMS = ("aws_cloudwatch_metric_alarm", "aws_cloudwatch_composite_alarm")
_ACTIONS = ("alarm_actions", "insufficient_data_actions", "ok_actions")

_SILENCE = {"notBreaching": 0, "ignore": 0, "missing": 1, "breaching": 2}
"""How much an alarm tells of a metric that stops: with ``missing`` it has insufficient data (CloudWatch guide)."""

_SMALL = 0.1
"""A threshold that changes by less than this share of itself is only tuned."""
_SMALL_OF_REST = 0.5
"""And of a percentage by less than this share of what is left to 100: 95 to 99 is not."""

# Metrics that are a share of something, in percent. Not those that add up over processors or GPUs.
_PERCENT = re.compile(
    r"^(Memory|Disk|mem_used|disk_used|swap_used|Database\w*Memory\w*)(Utilization|_percent)$|"
    r"^(mem|disk|swap)_used_percent$|^sagefit:\w+_percent$|^(Freeable|Evictable)?MemoryUsagePercentage$|"
    r"^(PercentIOLimit|BurstBalance|JVMMemoryPressure|CPUCreditUsagePercent|DatabaseMemoryUsagePercentage)$"
)
_CPU = re.compile(r"^CPUUtilization$")
_CPU_NAMESPACES = {
    "AWS/EC2",
    "AWS/RDS",
    "AWS/ECS",
    "AWS/ElastiCache",
    "AWS/ES",
    "AWS/Redshift",
    "AWS/DocDB",
    "AWS/Neptune",
}
_SELECT = re.compile(r"^\s*SELECT\s+(?:MAX|AVG|MIN)\(\s*\"?([\w:./-]+)\"?\s*\)\s+FROM", re.IGNORECASE)


def judge(change: Change, context: Context) -> Iterator[Hit]:  # noqa: ARG001
    """Alarms, event rules and budgets that notify less, or not at all."""
    if change.kind not in ("create", "update", "replace") or change.deposed:
        return
    if change.type in _ALARMS:
        if change.kind != "create":
            yield from _silenced(change)
            yield from _loosened(change)
        yield from _never(change)
    elif change.type == "aws_cloudwatch_event_rule" and change.kind != "create":
        yield from _rule(change)
    elif change.type == "aws_budgets_budget":
        before, after = (len(as_list(values.get("notification"))) for values in (change.before, change.after))
        if after < before:
            yield Hit("alarm-silenced", say("notifications of the budget: {} → {}", before, after))


def _silenced(change: Change) -> Iterator[Hit]:
    if first(was(change, "actions_enabled")) is not False and first(will_be(change, "actions_enabled")) is False:
        yield Hit("alarm-silenced", say("actions_enabled is false"))
    for name in _ACTIONS:
        after = first_list(will_be(change, name))
        if after is UNKNOWN:
            continue
        gone = [arn for arn in first_list(was(change, name)) or [] if arn not in after]
        unknown = change.change.after_unknown.get(name) if isinstance(change.change.after_unknown, dict) else None
        if gone and not (isinstance(unknown, list) and any(unknown)):
            severity = (
                None if name == "alarm_actions" and not after else "high" if name == "alarm_actions" else "medium"
            )
            yield Hit("alarm-silenced", say("{}: {} is removed", name, gone), severity)  # type: ignore[arg-type]


def first_list(values: list[Any]) -> Any:
    """A list of texts as ``was`` and ``will_be`` give it: one value that is a list."""
    value = first(values)
    return value if value is UNKNOWN else as_list(value)


def _loosened(change: Change) -> Iterator[Hit]:
    before, after = change.before, change.after
    upward = _upward(after)
    if upward is not _upward(before) and before.get("comparison_operator"):
        words = "comparison_operator: {} → {}"
        yield Hit("alarm-loosened", say(words, before["comparison_operator"], after.get("comparison_operator")), "high")
    old, new = _number(before.get("threshold")), _number(after.get("threshold"))
    if old is not None and new is not None and old != new and (new > old) is upward:
        _, highest = _metric(after)
        rest = highest - old if upward and highest is not None else None
        small = abs(new - old) <= _SMALL * abs(old) and (rest is None or new - old <= _SMALL_OF_REST * rest)
        yield Hit("alarm-loosened", say("threshold: {} → {}", old, new), "low" if small else None)
    yield from _missing(before, after)
    short, long = _patience(before), _patience(after)
    if short and long and long > short:
        words = "fires after {} seconds instead of {}"
        yield Hit("alarm-loosened", say(words, long, short), "low" if long <= 2 * short else None)


def _missing(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Hit]:
    """Silence that counted as bad and now counts as good, or as nothing."""
    old, new = (str(side.get("treat_missing_data") or "missing") for side in (before, after))
    if _SILENCE.get(new, 0) >= _SILENCE.get(old, 0):
        return
    told = old == "breaching" or bool(after.get("insufficient_data_actions")) or _upward(after) is False
    yield Hit("alarm-loosened", say("treat_missing_data: {} → {}", old, new), None if told else "low")


def _patience(values: dict[str, Any]) -> int | None:
    queries = [query for query in as_list(values.get("metric_query")) if isinstance(query, dict)]
    period = values.get("period") or next((query.get("period") for query in queries if query.get("period")), None)
    periods = values.get("datapoints_to_alarm") or values.get("evaluation_periods")
    return period * periods if isinstance(period, int) and isinstance(periods, int) else None


def _upward(values: dict[str, Any]) -> bool | None:
    operator = str(values.get("comparison_operator"))
    return True if operator.startswith("GreaterThan") else False if operator.startswith("LessThan") else None


def _never(change: Change) -> Iterator[Hit]:
    after = change.after
    threshold, upward = _number(after.get("threshold")), _upward(after)
    needed, periods = after.get("datapoints_to_alarm"), after.get("evaluation_periods")
    if isinstance(needed, int) and isinstance(periods, int) and needed > periods:
        yield Hit("alarm-never-fires", say("{} of {} data points are asked for", needed, periods))
    if threshold is None or upward is None:
        return
    metric, highest = _metric(after)
    or_equal = "OrEqualTo" in str(after.get("comparison_operator"))
    if upward and highest is not None and (threshold > highest or (threshold == highest and not or_equal)):
        yield Hit("alarm-never-fires", say("{} is at most {}, and the threshold is {}", metric, highest, threshold))
    if not upward and metric and (threshold < 0 or (threshold == 0 and not or_equal)):
        yield Hit("alarm-never-fires", say("{} is never below 0, and the threshold is {}", metric, threshold))


def _metric(values: dict[str, Any]) -> tuple[str, float | None]:
    """The one metric that is compared, and its highest value; an empty name where that is a computation."""
    name, namespace = values.get("metric_name"), values.get("namespace")
    statistic = values.get("statistic") or values.get("extended_statistic")
    for query in as_list(values.get("metric_query")):
        if isinstance(query, dict) and query.get("return_data"):
            metrics = [metric for metric in as_list(query.get("metric")) if isinstance(metric, dict)]
            if metrics:
                name, namespace = metrics[0].get("metric_name"), metrics[0].get("namespace")
                statistic = metrics[0].get("stat")
            elif found := _SELECT.match(str(query.get("expression"))):
                name, statistic = found[1], "Maximum"
    if not isinstance(name, str) or statistic in ("Sum", "SampleCount"):
        return "", None
    percent = _PERCENT.match(name) or (_CPU.match(name) and namespace in _CPU_NAMESPACES)
    if percent and statistic:
        return name, 100.0
    countable = re.search(
        r"(Count|Errors?|Duration|Latency|Requests?|Invocations|Messages\w*|Age\w*|Space|Bytes|Connections)$", name
    )
    return (name if percent or countable else ""), None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rule(change: Change) -> Iterator[Hit]:
    old_state, new_state = change.before.get("state"), change.after.get("state")
    was_off = old_state == "DISABLED" or change.before.get("is_enabled") is False
    is_off = new_state == "DISABLED" or change.after.get("is_enabled") is False
    if is_off and not was_off:
        yield Hit("alarm-silenced", say("the rule is switched off"))
