"""Every alarm and dashboard of the kept plans is read by the rules that AWS documents.

Queries and searches are read by ``metrics_insights.py``, limits of fields by botocore's models (``api_limits.py``). The
rest is written down here, from these pages, read on 2026-11-27 in stored copies (PutMetricAlarm in botocore's model;
the metrics of schedules by what others alarm on):

- https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html: periods, how long an alarm
  may look back, what may stand beside what
- https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Create_Metrics_Insights_Alarm.html: a query for several
  series needs GROUP BY and ORDER BY
- https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-limits.html: a query looks back three hours
- https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-limits.html: one
  minute is the shortest period
- https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html: dashboards
- https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html: metrics of training jobs
- https://docs.aws.amazon.com/scheduler/latest/UserGuide/monitoring-cloudwatch.html: metrics of schedules
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from aws.api_limits import beyond
from aws.kept import ACCOUNT, MISSING, REGION, UNKNOWN, Resource, plans, resources
from aws.metrics_insights import RESERVED, NotOfTheLanguageError, Query, Search, parse_query, parse_search
from sagefit_cloud.rules import Place, conflicts_of

ALARMS, DASHBOARDS = resources("aws_cloudwatch_metric_alarm"), resources("aws_cloudwatch_dashboard")
TRAINING = "/aws/sagemaker/TrainingJobs"
OF_HOSTS = {"CPUUtilization", "DiskUtilization", "GPUMemoryUtilization", "GPUUtilization", "MemoryUtilization"}
_HERE = Place(ACCOUNT, REGION, "aws")

# How Terraform calls the fields of PutMetricAlarm, where it is not the same in another case.
_FIELDS = {"metric_query": "Metrics"}
_LOOSE = {"tags", "dimensions", "metric_query"}


def own_metrics() -> set[str]:
    """The metrics that a job's own log lines give it, from the planned definition of a job."""
    text = json.dumps(plans()["test_golden[five-attempts]"]["values"])
    return set(re.findall(r'"Name": "(sagefit:\w+)", "Regex"', text))


def is_known(namespace: str, metric: str, dimensions: list[str]) -> bool:
    """Whether somebody publishes a metric with exactly these dimensions."""
    if namespace == "AWS/Scheduler":
        return (metric, dimensions) == ("InvocationDroppedCount", ["ScheduleGroup"])
    known: dict[tuple[str, ...], set[str]] = {("Host",): OF_HOSTS, ("TrainingJobName",): own_metrics()}
    return namespace == TRAINING and metric in known.get(tuple(dimensions), set())


def request_of(alarm: dict[str, Any]) -> dict[str, Any]:
    """The call that makes an alarm, without what is known after apply only."""
    known = {
        name: value for name, value in alarm.items() if value not in (UNKNOWN, MISSING) and name not in ("arn", "id")
    }
    asked = {_camel(name): value for name, value in known.items() if name not in _LOOSE}
    if "tags" in known:
        asked["Tags"] = _pairs(known["tags"], "Key")
    if "dimensions" in known:
        asked["Dimensions"] = _pairs(known["dimensions"], "Name")
    if "metric_query" in known:
        asked["Metrics"] = [{_camel(n): v for n, v in query.items() if v != ""} for query in known["metric_query"]]
    return asked


def _camel(name: str) -> str:
    return _FIELDS.get(name) or "".join(part.capitalize() for part in name.split("_")).replace("OkActions", "OKActions")


def _pairs(values: dict[str, str], key: str) -> list[dict[str, str]]:
    return [{key: name, "Value": value} for name, value in values.items()]


# --- Alarms ----------------------------------------------------------------------------------------------------------


def wrong_with(alarm: dict[str, Any], *, is_whole: bool = True) -> Iterator[str]:
    """What CloudWatch would not take of an alarm, and what it could never see."""
    asked = request_of(alarm)
    yield from beyond("cloudwatch", "PutMetricAlarmInput", asked, is_whole=is_whole)
    yield from map(str, conflicts_of("cloudwatch", "PutMetricAlarm", asked, _HERE))
    if asked["ComparisonOperator"].endswith(("UpperThreshold", "LowerThreshold")) or "Threshold" not in asked:
        yield "no static threshold"
    for action in asked.get("AlarmActions", []):
        if not re.fullmatch(r"arn:aws:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}", action):
            yield f"{action} is no topic"
    if "Metrics" in asked:
        yield from _wrong_queries(asked)
    else:
        yield from _wrong_metric(asked)


def _wrong_queries(asked: dict[str, Any]) -> Iterator[str]:
    if len(asked["Metrics"]) != 1:
        yield "an alarm may have one query"
    for query in asked["Metrics"]:
        if not re.fullmatch(r"[a-z]\w*", query.get("Id", "m1")):
            yield f"{query['Id']} begins with no lower-case letter"
        period = query.get("Period", 0)
        if period % 60:
            yield f"a query has no period of {period} s"
        try:
            yield from _wrong_query(parse_query(query["Expression"]))
        except NotOfTheLanguageError as problem:
            yield str(problem)


def _wrong_query(query: Query) -> Iterator[str]:
    if query.group_by and query.order_by is None:
        yield "an alarm on several series needs ORDER BY"
    if query.order_by and not query.group_by:
        yield "one series has no order"
    if query.schema is not None and set(query.group_by) - set(query.schema):
        yield f"it groups by {query.group_by}, and metrics have {query.schema}"
    if query.schema is None or not is_known(query.namespace, query.metric, query.schema):
        yield f"nobody publishes {query.metric} of {query.namespace} with {query.schema}"


def _wrong_metric(asked: dict[str, Any]) -> Iterator[str]:
    period = asked.get("Period", 0)
    if period not in (10, 20, 30) and (period < 60 or period % 60):
        yield f"no period of {period} s"
    if ("Statistic" in asked) == ("ExtendedStatistic" in asked):
        yield "not one statistic"
    dimensions = [each["Name"] for each in asked.get("Dimensions", [])]
    if not is_known(asked.get("Namespace", ""), asked.get("MetricName", ""), dimensions):
        yield f"nobody publishes {asked.get('MetricName')} of {asked.get('Namespace')} with {dimensions}"


@pytest.mark.parametrize("alarm", ALARMS, ids=str)
def test_an_alarm_is_as_documented(alarm: Resource) -> None:
    assert list(wrong_with(alarm.values, is_whole=alarm.is_whole)) == []


def test_all_alarms_and_dashboards_of_complete_plans_are_read() -> None:
    for kind, found in (("aws_cloudwatch_metric_alarm", ALARMS), ("aws_cloudwatch_dashboard", DASHBOARDS)):
        for plan, kept in plans().items():
            if plan.startswith("test_golden"):
                own = [each for each in found if each.plan == plan]
                assert len(own) == kept["counts"].get(kind, 0), (plan, kind)
        assert any(each.is_whole for each in found)


def test_names_of_alarms_are_their_own() -> None:
    names = [(each.plan, each.values["alarm_name"]) for each in ALARMS if each.is_whole]
    assert len(names) == len(set(names))


def test_no_other_kind_of_alarm_is_planned() -> None:
    kinds = {kind for kept in plans().values() for kind in kept.get("counts", {}) if "cloudwatch" in kind}
    assert kinds == {
        "aws_cloudwatch_dashboard",
        "aws_cloudwatch_event_rule",
        "aws_cloudwatch_event_target",
        "aws_cloudwatch_log_group",
        "aws_cloudwatch_metric_alarm",
    }


def _one(end: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in ALARMS if each.is_whole and each.address.endswith(end)).values
    return copy.deepcopy(found)


HOSTS = f'FROM SCHEMA("{TRAINING}", Host)'


@pytest.mark.parametrize(
    ("end", "spoiled", "problem"),
    [
        ('["disk"]', {"alarm_name": "x" * 256}, "length less than or equal to 255"),
        ('["disk"]', {"alarm_description": "x" * 1025}, "length less than or equal to 1024"),
        ('["disk"]', {"alarm_actions": ["arn:aws:sns:us-east-1:123456789012:a"] * 6}, "length less than or equal to 5"),
        ('["disk"]', {"alarm_actions": ["arn:aws:sqs:us-east-1:123456789012:a"]}, "is no topic"),
        ('["disk"]', {"comparison_operator": "GreaterThan"}, "satisfy enum value set"),
        ('["disk"]', {"comparison_operator": "GreaterThanUpperThreshold"}, "no static threshold"),
        ('["disk"]', {"treat_missing_data": "notbreaching"}, "TreatMissingData"),
        ('["disk"]', {"datapoints_to_alarm": 4}, "DatapointsToAlarm must be less"),
        ('["disk"]', {"evaluation_periods": 181}, "more than 3 hours"),
        ('["disk"]', {"period": 60}, "together with Period"),
        ('["disk"]', {"alarm_rule": "ALARM(a)"}, "'alarmRule' failed to satisfy constraint: there is no member"),
        ("schedules[0]", {"period": 45}, "no period of 45 s"),
        ("schedules[0]", {"evaluation_periods": 289}, "more than a day"),
        ("schedules[0]", {"period": 3600, "evaluation_periods": 169}, "more than a week"),
        ("schedules[0]", {"statistic": "Total"}, "satisfy enum value set"),
        ("schedules[0]", {"metric_name": "InvocationsDropped"}, "nobody publishes"),
        ("schedules[0]", {"dimensions": {"ScheduleName": "default"}}, "nobody publishes"),
        ("schedules[0]", {"namespace": ":AWS/Scheduler"}, "regular expression pattern"),
    ],
)
def test_a_spoiled_alarm_is_noticed(end: str, spoiled: dict[str, Any], problem: str) -> None:
    found = list(wrong_with(_one(end) | spoiled))
    assert any(problem in line for line in found), found


@pytest.mark.parametrize(
    ("spoiled", "problem"),
    [
        ({"period": 30}, "less than 60 seconds period"),
        ({"id": "M1"}, "no lower-case letter"),
        ({"return_data": False}, "Exactly one element"),
        ({"expression": f"SELECT MAX(DiskUtilization) {HOSTS} GROUP BY Host"}, "needs ORDER BY"),
        ({"expression": f"SELECT MAX(DiskUtilization) {HOSTS} ORDER BY MAX() DESC"}, "one series has no order"),
        ({"expression": f"SELECT MAX(DiskUtilisation) {HOSTS}"}, "nobody publishes DiskUtilisation"),
        ({"expression": f'SELECT MAX("sagefit:gpu_memory_percent") {HOSTS}'}, "nobody publishes sagefit:gpu"),
        ({"expression": f"SELECT MAX(DiskUtilization) {HOSTS} GROUP BY Job ORDER BY MAX()"}, "groups by ['Job']"),
        (
            {"expression": f"SEARCH('{{{TRAINING},Host}} MetricName=\"DiskUtilization\"', 'Maximum')"},
            "where SELECT is expected",
        ),
        ({"expression": f"SELECT MAX(DiskUtilization) {HOSTS}" + " " * 2048}, "length less than or equal to 2048"),
    ],
)
def test_a_spoiled_query_of_an_alarm_is_noticed(spoiled: dict[str, Any], problem: str) -> None:
    alarm = _one('["disk"]')
    alarm["metric_query"][0] |= spoiled
    found = list(wrong_with(alarm))
    assert any(problem in line for line in found), found


# --- Queries ---------------------------------------------------------------------------------------------------------

EC2 = 'SELECT AVG(CPUUtilization) FROM "AWS/EC2"'


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (EC2, Query("AVG", "CPUUtilization", "AWS/EC2")),
        ("select avg(CPUUtilization) from Mine", Query("AVG", "CPUUtilization", "Mine")),
        ('SELECT AVG(A) FROM SCHEMA("AWS/EC2")', Query("AVG", "A", "AWS/EC2", [])),
        (
            f"{EC2} WHERE T != 'c3.4xlarge'",
            Query("AVG", "CPUUtilization", "AWS/EC2", None, [("T", "!=", "c3.4xlarge")]),
        ),
        (r'SELECT AVG("Bytes\"Input\"") FROM Mine', Query("AVG", 'Bytes"Input"', "Mine")),
        ('SELECT AVG("LIMIT") FROM Mine', Query("AVG", "LIMIT", "Mine")),
        (
            'SELECT SUM(R) FROM SCHEMA("AWS/ApplicationELB", LoadBalancer, AvailabilityZone)\n'
            "WHERE LoadBalancer = 'app/1' AND A = 'b' "
            "GROUP BY AvailabilityZone, LoadBalancer ORDER BY MAX() DESC LIMIT 5",
            Query(
                "SUM",
                "R",
                "AWS/ApplicationELB",
                ["LoadBalancer", "AvailabilityZone"],
                [("LoadBalancer", "=", "app/1"), ("A", "=", "b")],
                ["AvailabilityZone", "LoadBalancer"],
                ("MAX", "DESC"),
                5,
            ),
        ),
    ],
)
def test_queries_of_the_page_are_read(text: str, query: Query) -> None:
    assert parse_query(text) == query


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT CPUUtilization FROM Mine",
        "SELECT MEDIAN(A) FROM Mine",
        "SELECT MAX(A)",
        "SELECT MAX(A) FROM AWS/EC2",  # needs quotes
        "SELECT MAX(sagefit:gpu) FROM Mine",  # needs quotes
        "SELECT MAX(LIMIT) FROM Mine",  # is reserved
        "SELECT MAX(A) FROM Mine GROUP BY group",  # is reserved in any case
        "SELECT MAX('A') FROM Mine",  # a value, not a name
        "SELECT MAX(A) FROM SCHEMA()",
        'SELECT MAX(A) FROM SCHEMA("AWS/EC2" Host)',
        f"{EC2} WHERE T = c3",  # needs quotes
        f'{EC2} WHERE T = "c3"',  # needs the other quotes
        f"{EC2} WHERE T LIKE 'c3'",
        f"{EC2} WHERE T = 'c3' OR T = 'c4'",
        f"{EC2} GROUP Host",
        f"{EC2} ORDER BY MAX DESC",
        f"{EC2} ORDER BY MAX() DOWN",
        f"{EC2} ORDER BY MAX() DESC GROUP BY Host",
        f"{EC2} LIMIT 0",
        f"{EC2} LIMIT 501",
        f"{EC2};",
        f'{EC2} WHERE T = "',
    ],
)
def test_other_queries_are_refused(text: str) -> None:
    with pytest.raises(NotOfTheLanguageError):
        parse_query(text)


def test_the_reserved_words_are_there() -> None:
    assert len(RESERVED) == 917
    assert {"ABORT", "DISK", "GROUP", "LIMIT", "ZONE"} <= RESERVED
    assert "HOST" not in RESERVED


# --- Dashboards ------------------------------------------------------------------------------------------------------

_METRIC_WIDGET = {
    *("accountId", "annotations", "legend", "liveData", "metrics", "period", "region", "sparkline", "stacked", "stat"),
    *("table", "timezone", "title", "view", "yAxis"),
}
_VIEWS = {"timeSeries", "singleValue", "gauge", "bar", "pie", "table"}
_LINE = {"value", "label", "color", "fill", "yAxis", "visible"}
_EXPRESSION = {"expression", "label", "id", "region", "accountId", "color", "period", "stat", "visible", "yAxis"}


def wrong_with_dashboard(body: dict[str, Any]) -> Iterator[str]:
    """What CloudWatch would not take of the body of a dashboard, or show another way."""
    yield from _unknown(body, {"start", "end", "periodOverride", "widgets", "variables"})
    widgets = body.get("widgets", [])
    if "widgets" not in body or len(widgets) > 500:
        yield "not 0 to 500 widgets"
    taken: set[tuple[int, int]] = set()
    for widget in widgets:
        yield from _unknown(widget, {"type", "x", "y", "width", "height", "properties"})
        x, y, width, height = (widget.get(name, default) for name, default in (("x", 0), ("y", 0), *_SIZE))
        if not (0 <= x <= 23 and y >= 0 and 1 <= width <= 24 and 1 <= height <= 1000 and x + width <= 24):
            yield f"{width} x {height} at {x}, {y} is not on the grid"
            continue
        cells = {(x + i, y + j) for i in range(width) for j in range(height)}
        if taken & cells:
            yield f"{x}, {y} is taken"
        taken |= cells
        if widget["type"] != "metric":
            yield f"nothing is known of widgets of type {widget['type']} here"
        else:
            yield from _wrong_widget(widget["properties"])


_SIZE = (("width", 6), ("height", 6))


def _unknown(part: dict[str, Any], known: set[str]) -> Iterator[str]:
    yield from (f"{name} is unknown" for name in sorted(set(part) - known))


def _wrong_widget(properties: dict[str, Any]) -> Iterator[str]:
    yield from _unknown(properties, _METRIC_WIDGET)
    if properties.get("region") != REGION:
        yield "no region, or another"
    period = properties.get("period", 300)
    if period < 60 or period % 60:
        yield f"no period of {period} s"
    if properties.get("view", "timeSeries") not in _VIEWS:
        yield f"no view {properties['view']}"
    for side, axis in properties.get("yAxis", {}).items():
        yield from _unknown({side: axis}, {"left", "right"})
        yield from _unknown(axis, {"label", "min", "max", "showUnits"})
    annotations = properties.get("annotations", {})
    yield from _unknown(annotations, {"horizontal"})
    for line in annotations.get("horizontal", []):
        yield from _unknown(line, _LINE)
        if not isinstance(line.get("value"), (int, float)):
            yield "a line without a value"
    metrics = properties.get("metrics", [])
    if not 1 <= len(metrics) <= 100:  # it takes 500, and 100 searches
        yield f"{len(metrics)} expressions"
    ids = [each.get("id") for (each,) in metrics]
    if len(set(ids)) < len(ids) or not all(re.fullmatch(r"[a-z]\w*", str(each)) for each in ids):
        yield f"ids {ids}"
    for (each,) in metrics:
        yield from _unknown(each, _EXPRESSION)
        try:
            yield from _wrong_search(parse_search(each["expression"]), period)
        except NotOfTheLanguageError as problem:
            yield str(problem)


def _wrong_search(search: Search, period: int) -> Iterator[str]:
    if set(search.properties) != {"MetricName"}:
        yield f"it searches by {sorted(search.properties)}"
    metric = search.properties.get("MetricName", "")
    if not is_known(search.namespace, metric, list(search.dimensions)):
        yield f"nobody publishes {metric} of {search.namespace} with {search.dimensions}"
    if search.period not in (None, period):
        yield f"{search.period} s, and {period} s in its widget"


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=str)
def test_a_dashboard_is_as_documented(dashboard: Resource) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,255}", dashboard.values["dashboard_name"])
    assert list(wrong_with_dashboard(dashboard.values["dashboard_body"])) == []


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=str)
def test_a_dashboard_draws_the_thresholds_of_the_alarms(dashboard: Resource) -> None:
    own = [each.values for each in ALARMS if each.plan == dashboard.plan and "metric_query" in each.values]
    thresholds = {parse_query(each["metric_query"][0]["expression"]).metric: each["threshold"] for each in own}
    drawn = {}
    for widget in dashboard.values["dashboard_body"]["widgets"]:
        properties = widget["properties"]
        metric = parse_search(properties["metrics"][0][0]["expression"]).properties["MetricName"]
        for line in properties["annotations"]["horizontal"]:
            drawn[metric] = line["value"]
    assert drawn == thresholds


def _body() -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(DASHBOARDS[0].values["dashboard_body"])
    return found


@pytest.mark.parametrize(
    ("spoiled", "problem"),
    [
        ({"x": 13}, "is not on the grid"),
        ({"width": 25}, "is not on the grid"),
        ({"height": 0}, "is not on the grid"),
        ({"x": 12}, "is taken"),
        ({"type": "metrics"}, "nothing is known"),
        ({"wide": 12}, "wide is unknown"),
    ],
)
def test_a_spoiled_widget_is_noticed(spoiled: dict[str, Any], problem: str) -> None:
    body = _body()
    body["widgets"][0] |= spoiled
    found = list(wrong_with_dashboard(body))
    assert any(problem in line for line in found), found


@pytest.mark.parametrize(
    ("spoiled", "problem"),
    [
        ({"region": None}, "no region"),
        ({"period": 90}, "no period of 90 s"),
        ({"view": "timeseries"}, "no view timeseries"),
        ({"yaxis": {}}, "yaxis is unknown"),
        ({"yAxis": {"top": {"min": 0}}}, "top is unknown"),
        ({"annotations": {"horizontal": [{"label": "alarm"}]}}, "a line without a value"),
        ({"metrics": []}, "0 expressions"),
        ({"metrics": [[{"id": "E1", "expression": "SEARCH"}]]}, "ids ['E1']"),
        ({"period": 300}, "60 s, and 300 s in its widget"),
    ],
)
def test_spoiled_properties_are_noticed(spoiled: dict[str, Any], problem: str) -> None:
    body = _body()
    body["widgets"][0]["properties"] |= spoiled
    found = list(wrong_with_dashboard(body))
    assert any(problem in line for line in found), found


def test_too_many_widgets_are_noticed() -> None:
    assert "not 0 to 500 widgets" in list(wrong_with_dashboard({"widgets": _body()["widgets"] * 84}))
    assert "not 0 to 500 widgets" in list(wrong_with_dashboard({}))


@pytest.mark.parametrize(
    ("text", "search"),
    [
        (
            "SEARCH('{AWS/EC2,InstanceId} MetricName=\"CPUUtilization\"', 'Average')",
            Search("AWS/EC2", ("InstanceId",), {"MetricName": "CPUUtilization"}, "Average", None),
        ),
        (
            'SEARCH(\' {"My Namespace", "Dimension@Name"} '
            "MetricName=\"Custom:Name[Special_Characters\" ', 'Maximum', 300)",
            Search(
                "My Namespace", ("Dimension@Name",), {"MetricName": "Custom:Name[Special_Characters"}, "Maximum", 300
            ),
        ),
    ],
)
def test_searches_of_the_page_are_read(text: str, search: Search) -> None:
    assert parse_search(text) == search


@pytest.mark.parametrize(
    "text",
    [
        "SEARCH('{AWS/EC2,InstanceId} MetricName=\"A\"')",
        "SEARCH({AWS/EC2,InstanceId} MetricName=\"A\", 'Average')",
        "SEARCH('{AWS/EC2,InstanceId} MetricName=\"A\"', 'Mean')",
        "SEARCH('{AWS/EC2,InstanceId} MetricName=\"A\"', 'Average', 45)",
        "SEARCH('{AWS/EC2,InstanceId MetricName=\"A\"', 'Average')",
        "SEARCH('{AWS/EC2,Instance Id} MetricName=\"A\"', 'Average')",
        "SEARCH('{AWS/EC2,InstanceId} MetricName=\"A(b)\"', 'Average')",
        "SEARCH('{AWS/EC2,InstanceId} MetricName=\"A', 'Average')",
        "SEARCH('{AWS/EC2,InstanceId}', 'Average')",
        f"SEARCH('{{AWS/EC2,InstanceId}} MetricName=\"{'A' * 1024}\"', 'Average')",
        "SERACH('{AWS/EC2,InstanceId} MetricName=\"A\"', 'Average')",
    ],
)
def test_other_searches_are_refused(text: str) -> None:
    with pytest.raises(NotOfTheLanguageError):
        parse_search(text)
