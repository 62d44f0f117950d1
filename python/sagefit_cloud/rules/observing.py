"""Rules of what watches jobs: alarms, dashboards, logs and mail."""

from __future__ import annotations

import json
import re
from typing import Any

from sagefit.documents import as_list
from sagefit_cloud.rules.table import Answers, Request, Said, of

_ALARM, _POLICY = "cloudwatch:PutMetricAlarm", "sns:SetTopicAttributes"
_QUERY = re.compile(r"\s*SELECT\s", re.IGNORECASE)
_HOUR, _DAY, _WEEK = 3600, 86400, 604800  # seconds
_LONGEST_QUERY = 3 * _HOUR
_EXCLUSIVE = ("MetricName", "Namespace", "Dimensions", "Period", "Unit", "Statistic", "ExtendedStatistic")
_MISSING = ("breaching", "notBreaching", "ignore", "missing")
# fmt: off
_RETENTION = (
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
)
# fmt: on


def _expressions(request: Request) -> list[dict[str, Any]]:
    return [each for each in request.get("Metrics", []) if "Expression" in each]


def _periods(request: Request) -> list[int]:
    """The periods of an alarm, in seconds."""
    found = [each.get("Period") or each.get("MetricStat", {}).get("Period") for each in request.get("Metrics", [])]
    return [int(period) for period in [request.get("Period"), *found] if period]


@of(_ALARM)
def metrics_or_one_metric(request: Request) -> Answers:
    """An alarm is on one metric, or on what its queries make of metrics."""
    if "Metrics" in request:
        if both := [name for name in _EXCLUSIVE if request.get(name) not in (None, [], "")]:
            yield f"Metrics cannot be specified together with {', '.join(both)}"
    elif "MetricName" not in request:
        yield "MetricName must not be null"


@of(_ALARM)
def one_result_of_an_alarm(request: Request) -> Answers:
    """One of the queries of an alarm gives the result."""
    shown = [each for each in request.get("Metrics", []) if str(each.get("ReturnData", True)).lower() == "true"]
    if "Metrics" in request and len(shown) != 1:
        yield "Exactly one element of the metrics list should return data."


@of(_ALARM)
def search_in_an_alarm(request: Request) -> Answers:
    """An alarm searches for no metrics."""
    if any(re.search(r"\bSEARCH\s*\(", each["Expression"]) for each in _expressions(request)):
        yield "SEARCH is not supported on Metric Alarms"


@of(_ALARM)
def period_of_a_query(request: Request) -> Answers:
    """A Metrics Insights query has a period, of a minute at least."""
    for each in _expressions(request):
        if _QUERY.match(each["Expression"]):
            if not each.get("Period"):
                yield "Period must not be null"
            elif int(each["Period"]) < 60:
                yield "MetricsInsights monitors do not support less than 60 seconds period"


@of(_ALARM)
def window_of_a_query(request: Request) -> Answers:
    """An alarm on a Metrics Insights query looks back three hours at most."""
    for each in _expressions(request):
        if _QUERY.match(each["Expression"]) and each["Period"] * request["EvaluationPeriods"] > _LONGEST_QUERY:
            yield "MetricsInsights monitors cannot be checked across more than 3 hours"


@of(_ALARM)
def window_of_an_alarm(request: Request) -> Answers:
    """An alarm looks back a day at most, or a week if its period is an hour or more."""
    for period in _periods(request):
        long = period >= _HOUR
        what, most, sign = ("a week", _WEEK, ">=") if long else ("a day", _DAY, "<")
        if period * request["EvaluationPeriods"] > most:
            yield (
                f"Metrics cannot be checked across more than {what} (EvaluationPeriods * Period must be <= {most}) for "
                f"alarms using period {sign} {_HOUR}"
            )


@of(_ALARM)
def points_of_an_alarm(request: Request) -> Answers:
    """Not more points have to be over the threshold than are looked at."""
    if (request.get("DatapointsToAlarm") or 0) > request["EvaluationPeriods"]:
        yield "DatapointsToAlarm must be less than or equal to EvaluationPeriods"


@of(_ALARM)
def missing_data_of_an_alarm(request: Request) -> Answers:
    """What missing data mean is one of four words."""
    if request.get("TreatMissingData", "missing") not in _MISSING:
        yield "Supported values for TreatMissingData are breaching, notBreaching, ignore, and missing."


@of("cloudwatch:PutDashboard")
def name_of_a_dashboard(request: Request) -> Answers:
    """The name of a dashboard has letters, digits, hyphens and underscores."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", request["DashboardName"]):
        yield (
            "The value for field DashboardName contains invalid characters. It can only contain alphanumerics, dash "
            "(-) and underscore (_).\n"
        )


@of("cloudwatch:PutDashboard")
def widgets_of_a_dashboard(request: Request) -> Answers:
    """Each widget has a type and properties, and lies within the 24 columns."""
    try:
        widgets = json.loads(request["DashboardBody"]).get("widgets", [])
    except (ValueError, AttributeError):
        return  # moto has an answer to that
    wrong = [
        index
        for index, widget in enumerate(widgets)
        if not {"type", "properties"} <= set(widget) or widget.get("x", 0) + widget.get("width", 6) > 24
    ]
    if wrong:
        yield Said(
            f"The dashboard body is invalid, there are {len(wrong)} validation errors: "
            f"{json.dumps([{'dataPath': f'/widgets/{index}', 'message': 'Should have a place'} for index in wrong])}",
            "InvalidParameterInput",
        )


@of("logs:PutRetentionPolicy")
def days_of_a_log(request: Request) -> Answers:
    """A log is kept for one of some numbers of days."""
    days = request["retentionInDays"]
    if days not in _RETENTION:
        yield (
            f"1 validation error detected: Value '{days}' at 'retentionInDays' failed to satisfy constraint: Member "
            f"must satisfy enum value set: [{', '.join(map(str, _RETENTION))}]"
        )


@of(_POLICY)
def actions_of_a_topic(request: Request) -> Answers:
    """The policy of a topic speaks of SNS alone."""
    if request["AttributeName"] != "Policy":
        return
    try:
        statements = as_list(json.loads(request.get("AttributeValue") or "{}").get("Statement", []))
    except (ValueError, AttributeError):
        return  # moto has an answer to that
    for statement in statements:
        if any(not action.lower().startswith("sns:") for action in as_list(statement.get("Action", []))):
            yield "Invalid parameter: Policy statement action out of service scope!"
