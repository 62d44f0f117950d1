"""Every event rule of the kept plans is tried on the events that AWS documents.

``events`` holds AWS's own examples, one a file, with the page each is from and the day it was read. moto judges which
of them a pattern matches (``moto.events.models.EventPattern``); it is locked already, as the embedded cloud stands on
it. Patterns here use three of its operators, equality, prefix and absence, and a test refuses any other.

Whether a field that says nothing is absent or null is in no page: AWS's example of a training job leaves such fields
out, and the events that AWS's own MLSpace recorded in 2023 (awslabs/mlspace, the tests of its resource_metadata) have
``null`` there. So what must be absent may be null as well.

The events of a run have one gap in AWS's pages: their list of fields has neither ``error`` nor ``cause``, while a page
before it says that an event tells what DescribeExecution answers, which has both. A recorded event of 2022 has neither.
So these two may be read for a text, where an absent one leaves its place empty, and for nothing else.

Pages, read on 2026-11-27 in stored copies, of which that on variables is of 2023:

- https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html: variables, templates
- https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html: size of a pattern, targets of a rule
- https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html: what a name may hold
- https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutTargets.html, by botocore's model: other limits
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.events.models import EventPattern
from moto.stepfunctions.parser.api import ExecutionStatus, StateMachineType
from moto.stepfunctions.parser.backend.execution import Execution

from aws.api_limits import beyond, members, model
from aws.kept import ACCOUNT, MISSING, REGION, UNKNOWN, Resource, plans, resources
from sagefit_cloud.extensions import events, processing, sagemaker, stepfunctions
from sagefit_cloud.jobs import TrainingJob
from sagefit_cloud.processing_jobs import ProcessingJob

Event = dict[str, Any]
SAMPLES = {path.stem: json.loads(path.read_text("utf-8")) for path in (Path(__file__).parent / "events").glob("*.json")}
# The lists of fields on the same pages: what an event may tell beside its example, by botocore's models.
DESCRIBED = {
    "states": ("stepfunctions", "DescribeExecutionOutput"),
    "sagemaker-training-job": ("sagemaker", "DescribeTrainingJobResponse"),
    "sagemaker-tuning-job": ("sagemaker", "DescribeHyperParameterTuningJobResponse"),
    "sagemaker-processing-job": ("sagemaker", "DescribeProcessingJobResponse"),
}
UNDOCUMENTED = {"$.detail.cause", "$.detail.error"}
# What AWS puts between quotes unescaped must hold none: a status is a word, and no quote may be in a name.
WITHOUT_QUOTES = {"$.detail.executionArn", "$.detail.name", "$.detail.status"}
MAX_PATTERN, MAX_TARGETS = 2048, 5
ABSENT = [None, {"exists": False}]
_PATH, _PLACE = re.compile(r"\$(\.[A-Za-z0-9_-]+)+"), re.compile(r"<([^<>]*)>")
_RULE, _TARGET = "aws_cloudwatch_event_rule", "aws_cloudwatch_event_target"


# --- What each rule must hear, and what not --------------------------------------------------------------------------

MACHINE, ROLE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine", f"arn:aws:iam::{ACCOUNT}:role"
TUNING = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/search-261128-120000-0"
UNSUCCESSFUL = ("states-aborted", "states-failed", "states-timed-out")
OTHER_STATES = ("states-running", "states-succeeded", "states-pending-redrive")


@dataclass(frozen=True)
class Row:
    """Samples, each with what it says here: of this platform, or of somebody else. None is a field without a value."""

    hears: tuple[tuple[str, Mapping[str, str | None]], ...]
    ignores: tuple[tuple[str, Mapping[str, str | None]], ...]


def _states(own: str, others: tuple[str, ...], ends: tuple[str, ...] = UNSUCCESSFUL) -> Row:
    """A rule on the executions of a state machine that end without success, in some ways."""
    return Row(
        hears=tuple((name, {"stateMachineArn": f"{MACHINE}:{own}"}) for name in ends),
        ignores=(
            *((name, {"stateMachineArn": f"{MACHINE}:{own}"}) for name in OTHER_STATES),
            *((name, {"stateMachineArn": f"{MACHINE}:{own}"}) for name in UNSUCCESSFUL if name not in ends),
            *((name, {"stateMachineArn": f"{MACHINE}:{other}"}) for name in UNSUCCESSFUL for other in others),
            ("sagemaker-training-job", {"TrainingJobStatus": "Failed", "RoleArn": f"{ROLE}/{{prefix}}-execution"}),
        ),
    )


def _attempts(statuses: tuple[str, ...], roles: tuple[str, ...]) -> Row:
    """A rule on training jobs with the roles of a platform."""

    def job(status: str, role: str, **more: str | None) -> tuple[str, dict[str, str | None]]:
        why = {"FailureReason": "AlgorithmError: exit code: 1"} if status == "Failed" else {}
        return "sagemaker-training-job", {
            "TrainingJobStatus": status,
            "SecondaryStatus": status,
            "RoleArn": f"{ROLE}/{role}",
            **why,
            **more,
        }

    silent = {"Completed", "Failed", "InProgress", "Stopped", "Stopping"} - set(statuses)
    strangers = ("SMRole", "other-execution", "sagefit/other/quickstart", "sagefit-other-execution")
    return Row(
        hears=(
            *(job(status, role) for status in statuses for role in roles),
            *(job(status, role, TuningJobArn=None) for status in statuses for role in roles),
        ),
        ignores=(
            *(job(status, role, TuningJobArn=TUNING) for status in statuses for role in roles),
            *(job(status, role) for status in sorted(silent) for role in roles),
            *(job(status, role) for status in statuses for role in strangers),
            ("sagemaker-processing-job", {"RoleArn": f"{ROLE}/{{prefix}}-execution"}),
            ("sagemaker-tuning-job", {"HyperParameterTuningJobStatus": "Failed"}),
            ("states-failed", {"stateMachineArn": f"{MACHINE}:{{prefix}}-quickstart"}),
        ),
    )


def _runs(*ends: str) -> Row:
    """A rule on the runs of a platform's jobs."""
    others = ("{prefix}_cleanup", "{prefix}", "sagefit-other-quickstart", "mine")
    return _states("{prefix}-quickstart", others, ends)


ROWS = {
    "attempts": _attempts(("Failed", "Stopped"), ("{prefix}-execution", "sagefit/{platform}/quickstart")),
    "runs": _runs("states-failed"),
    "aborted-runs": _runs("states-aborted"),
    "late-runs": _runs("states-timed-out"),
    "cleanup": _runs(*UNSUCCESSFUL),
    "cleanups": _states("{prefix}_cleanup", ("{prefix}-quickstart", "sagefit-other_cleanup", "{prefix}_cleanup-start")),
}
# Rules of the module alone, with other values.
ROWS_OF = {
    ("modules/memory-alarms/minimal", "attempts"): _attempts(("Failed", "Stopped"), ("{prefix}-execution",)),
    ("modules/memory-alarms/full", "attempts"): _attempts(("Failed",), ("{prefix}-execution",)),
}


@dataclass(frozen=True)
class Rule:
    """A planned rule with its only target."""

    rule: Resource
    target: Resource

    @property
    def key(self) -> str:
        """What it is for: its name without that of the platform."""
        found = re.search(r'this\["(.+)"\]$', self.rule.address)
        return found[1] if found else "cleanup"

    @property
    def prefix(self) -> str:
        """What the names of its platform begin with; the cases of modules share one."""
        return str(self.rule.values.get("name", f"sagefit-dev-{self.key}")).removesuffix(f"-{self.key}")

    @property
    def pattern(self) -> dict[str, Any]:
        """Which events it hears."""
        found: dict[str, Any] = self.rule.values["event_pattern"]
        return found

    @property
    def paths(self) -> dict[str, str]:
        """What it reads from an event, by the name of the place it goes to."""
        found: dict[str, str] = self.target.values["input_transformer"][0]["input_paths"]
        return found

    @property
    def template(self) -> str:
        """What it sends. A kept plan has JSON parsed, so what is an object was one."""
        found = self.target.values["input_transformer"][0]["input_template"]
        return found if isinstance(found, str) else json.dumps(found)

    @property
    def starts_a_machine(self) -> bool:
        """Whether its target is a state machine, which takes JSON."""
        return ":states:" in self.target.values["arn"]

    @property
    def row(self) -> Row:
        """What it must hear, and what not."""
        return ROWS_OF.get((self.rule.plan, self.key)) or ROWS[self.key]

    def event(self, sample: str, says: Mapping[str, str | None]) -> Event:
        """An example of AWS that says something of this platform."""
        event: Event = copy.deepcopy(SAMPLES[sample]["event"])
        places = {"prefix": self.prefix, "platform": self.prefix.removeprefix("sagefit-")}
        event["detail"] |= {name: text and text.format(**places) for name, text in says.items()}
        return event

    def heard(self) -> list[Event]:
        """Events it must hear."""
        return [self.event(*case) for case in self.row.hears]


@cache
def rules() -> list[Rule]:
    """All kept rules with their targets."""
    targets = {(each.plan, each.address): each for each in resources(_TARGET)}
    return [Rule(each, targets[each.plan, each.address.replace(_RULE, _TARGET)]) for each in resources(_RULE)]


@pytest.fixture(params=rules(), ids=lambda rule: str(rule.rule))
def rule(request: pytest.FixtureRequest) -> Rule:
    found: Rule = request.param
    return found


def matches(pattern: dict[str, Any], event: Event) -> bool:
    message: Any = event
    found: bool = EventPattern.load(json.dumps(pattern)).matches_event(message)
    return found


# --- The samples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_says_where_it_is_from(name: str) -> None:
    assert set(SAMPLES[name]) == {"source", "read", "note", "event"}
    assert SAMPLES[name]["source"].startswith("https://docs.aws.amazon.com/")
    assert datetime.strptime(SAMPLES[name]["read"], "%Y-%m-%d")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_names_nothing_that_the_api_does_not_know(name: str) -> None:
    """An event tells what the API answers when it is asked for the same, and tags."""
    known = members(*DESCRIBED["states" if name.startswith("states") else name]) | {"Tags"}
    assert set(SAMPLES[name]["event"]["detail"]) <= known


def test_every_status_of_an_execution_has_a_sample() -> None:
    known = set(model("stepfunctions").shape_for("ExecutionStatus").metadata["enum"])
    assert {SAMPLES[name]["event"]["detail"]["status"] for name in (*UNSUCCESSFUL, *OTHER_STATES)} == known


# --- Patterns --------------------------------------------------------------------------------------------------------


def test_every_planned_rule_has_a_row_and_a_target() -> None:
    assert {rule.key for rule in rules()} == set(ROWS)
    for plan, kept in plans().items():
        if plan.startswith("test_golden"):
            assert len([each for each in rules() if each.rule.plan == plan]) == kept["counts"].get(_RULE, 0), plan
            assert len([each for each in resources(_TARGET) if each.plan == plan]) == kept["counts"].get(_TARGET, 0)


def test_a_rule_is_called_as_it_is_found_here(rule: Rule) -> None:
    if rule.rule.is_whole:
        assert rule.rule.values["name"] == rule.target.values["rule"] == f"{rule.prefix}-{rule.key}"


def test_a_rule_hears_what_it_must(rule: Rule) -> None:
    assert [event["detail"] for event in rule.heard() if not matches(rule.pattern, event)] == []


def test_a_rule_hears_nothing_else(rule: Rule) -> None:
    others = [rule.event(*case) for case in rule.row.ignores]
    assert [event["detail"] for event in others if matches(rule.pattern, event)] == []


def _named(pattern: dict[str, Any], place: str = "$") -> Iterator[tuple[str, list[Any]]]:
    """The fields that a pattern names, with what it wants there."""
    for name, part in pattern.items():
        if isinstance(part, dict):
            yield from _named(part, f"{place}.{name}")
        else:
            yield f"{place}.{name}", part


def _read(path: str, event: Event) -> Any:
    """What a path finds; a KeyError where it finds nothing."""
    found: Any = event
    for name in path.split(".")[1:]:
        found = found[name]
    return found


def problems_of(pattern: dict[str, Any], heard: list[Event]) -> Iterator[str]:
    """What AWS would not take, or would never match."""
    size = len(json.dumps(pattern, separators=(",", ":")))
    if size > MAX_PATTERN:
        yield f"{size} characters, of {MAX_PATTERN}"
    for path, wanted in _named(pattern):
        if not isinstance(wanted, list) or not wanted:
            yield f"{path}: {wanted!r} is no list with something in it"
            continue
        if wanted == ABSENT:
            fields = {f"$.detail.{name}" for name in members(*DESCRIBED["sagemaker-training-job"])}
            if path not in fields:
                yield f"{path} is in no event, so that it is absent says nothing"
            continue
        for want in wanted:
            if not isinstance(want, str) and not (isinstance(want, dict) and list(want) == ["prefix"]):
                yield f"{path}: {want!r} is neither a text nor a prefix"
        for event in heard:
            try:
                _read(path, event)
            except KeyError:
                yield f"{path} is in no event of {event['detail-type']}"


def test_a_pattern_names_fields_that_events_have(rule: Rule) -> None:
    assert list(problems_of(rule.pattern, rule.heard())) == []


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"detail": {"state": ["FAILED"]}}, "$.detail.state is in no event"),
        ({"detailType": ["Step Functions Execution Status Change"]}, "$.detailType is in no event"),
        ({"detail": {"status": "FAILED"}}, "is no list"),
        ({"detail": {"status": []}}, "is no list"),
        ({"detail": {"status": [{"sufix": "ED"}]}}, "neither a text nor a prefix"),
        ({"detail": {"status": [{"exists": False}]}}, "neither a text nor a prefix"),
        ({"detail": {"TuningArn": ABSENT}}, "$.detail.TuningArn is in no event, so that it is absent says nothing"),
        ({"detail": {"status": ["FAILED"] * 230}}, "characters, of 2048"),
    ],
)
def test_a_spoiled_pattern_is_noticed(part: dict[str, Any], problem: str) -> None:
    found = list(problems_of({"source": ["aws.states"], **part}, [SAMPLES["states-failed"]["event"]]))
    assert any(problem in line for line in found), found


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        ({"status": ["FAILED", "TIMED_OUT"]}, "states-aborted"),
        ({"status": ["Failed"]}, "states-failed"),
        ({"stateMachineArn": [{"prefix": f"{MACHINE}:sagefit-dev-"}]}, "states-failed"),
    ],
)
def test_a_pattern_that_hears_too_little_is_noticed(part: dict[str, Any], sample: str) -> None:
    assert not matches({"source": ["aws.states"], "detail": part}, SAMPLES[sample]["event"])


# --- Targets ---------------------------------------------------------------------------------------------------------


def transformed(template: str, paths: dict[str, str], event: Event) -> str:
    """What EventBridge makes of an event.

    A value is put in its place as it is, without escapes. It gets quotes where it is the value of a field of JSON and
    stands between none. What a path does not find is not created: its place stays empty.
    """
    text = template
    for name, path in paths.items():
        try:
            value = _read(path, event)
        except KeyError:
            value = ""
        plain = value if isinstance(value, str) else json.dumps(value)
        text = text.replace(f'"<{name}>"', f'"{plain}"') if template.startswith("{") else text
        text = text.replace(f"<{name}>", json.dumps(value) if template.startswith("{") else plain)
    return text


def wrong_with(template: str, paths: dict[str, str], heard: list[Event], *, json_wanted: bool) -> Iterator[str]:
    """What AWS would not take of a transformer, and what it would send nobody could use."""
    yield from beyond("events", "InputTransformer", {"InputPathsMap": paths, "InputTemplate": template})
    places = set(_PLACE.findall(template))
    yield from (f"<{name}> is read from nowhere" for name in sorted(places - set(paths)))
    yield from (f"{name} goes nowhere" for name in sorted(set(paths) - places))
    for name, path in paths.items():
        if name.lower().startswith("aws"):
            yield f"{name} begins as AWS's own variables do"
        if not _PATH.fullmatch(path):
            yield f"{path} is not in dot notation"
            continue
        found = [event for event in heard if _has(path, event)]
        if json_wanted and (len(found) < len(heard) or path not in WITHOUT_QUOTES):
            yield f"{path} may be absent, or hold quotes, and JSON is wanted"
        elif not found and path not in UNDOCUMENTED:
            yield f"{path} is in no event that is heard"
    for event in heard:
        yield from _unusable(transformed(template, paths, event), json_wanted=json_wanted)


def _has(path: str, event: Event) -> bool:
    try:
        return _read(path, event) is not None
    except KeyError:
        return False


def _unusable(text: str, *, json_wanted: bool) -> Iterator[str]:
    """Text is sent as lines, each between quotes; a quote inside is sent as it is, as the page's examples show."""
    if _PLACE.search(text):
        yield f"a place is left in {text}"
    if not json_wanted:
        yield from (f"not between quotes: {line}" for line in text.splitlines() if not re.fullmatch('".*"', line))
        return
    try:
        if not isinstance(json.loads(text), dict):
            yield f"no object: {text}"
    except ValueError:
        yield f"no JSON: {text}"


def test_what_is_sent_can_be_used(rule: Rule) -> None:
    assert list(wrong_with(rule.template, rule.paths, rule.heard(), json_wanted=rule.starts_a_machine)) == []


def test_a_state_machine_is_given_what_its_definition_reads(rule: Rule) -> None:
    if not rule.starts_a_machine:
        return
    kept = [each for each in resources("aws_sfn_state_machine") if each.plan == rule.rule.plan]
    definitions = [each.values["definition"]["States"] for each in kept if "definition" in each.values]
    first = [[states[name]["Parameters"] for name in ("began", "begin")] for states in definitions if "begin" in states]
    for event in rule.heard():
        detail, sent = event["detail"], json.loads(transformed(rule.template, rule.paths, event))
        assert sent == {"run": detail["name"], "status": detail["status"], "execution": detail["executionArn"]}
        assert all(set(re.findall(r"\$\.(\w+)", json.dumps(read))) - {"began"} == set(sent) for read in first)
    assert first or not rule.rule.is_whole


def test_the_embedded_cloud_makes_the_same_of_an_event(rule: Rule) -> None:
    target = {"InputTransformer": {"InputTemplate": rule.template, "InputPathsMap": rule.paths}}
    for event in rule.heard():
        assert events._text(target, event) == transformed(rule.template, rule.paths, event)


PATHS = {"run": "$.detail.name", "status": "$.detail.status"}


@pytest.mark.parametrize(
    ("template", "paths", "json_wanted", "problem"),
    [
        ('"Run <run>: <status>"', PATHS, False, None),
        ('{"run": "<run>", "status": <status>}', PATHS, True, None),
        ("Run <run>: <status>", PATHS, False, "not between quotes"),
        ('"Run <run>: <state>"', PATHS, False, "<state> is read from nowhere"),
        ('"Run <run>"', PATHS, False, "status goes nowhere"),
        ('"Run <run>: <status>"', PATHS | {"run": "$.detail.executionName"}, False, "is in no event that is heard"),
        ('"Run <run>: <status>"', PATHS | {"run": "$['detail']['name']"}, False, "not in dot notation"),
        ('"<aws.run>"', {"aws.run": "$.detail.name"}, False, "regular expression pattern"),
        ('{"run": "<run>", "status": "<status>"', PATHS, True, "no JSON"),
        ('{"run": "<run>", "status": <status>}', PATHS | {"run": "$.detail.input"}, True, "hold quotes"),
        ('{"run": "<run>", "status": <status>}', PATHS | {"run": "$.detail.error"}, True, "may be absent"),
        (f'"<run> <status> {"x" * 8192}"', PATHS, False, "length less than or equal to 8192"),
        ("".join(f"<v{i}>" for i in range(101)), {f"v{i}": "$.id" for i in range(101)}, False, "or equal to 100"),
    ],
)
def test_a_spoiled_transformer_is_noticed(
    template: str, paths: dict[str, str], json_wanted: bool, problem: str | None
) -> None:
    found = list(wrong_with(template, paths, [SAMPLES["states-failed"]["event"]], json_wanted=json_wanted))
    assert found == [] if problem is None else any(problem in line for line in found), found


def _put(rule: Rule) -> tuple[dict[str, Any], dict[str, Any]]:
    """The requests that make a rule and its target; tags and what is known after apply aside."""
    known = {name: value for name, value in rule.rule.values.items() if value not in (UNKNOWN, MISSING)}
    asked = {
        "Name": known["name"],
        "Description": known["description"],
        "EventPattern": json.dumps(known["event_pattern"]),
    }
    values = rule.target.values
    target = {"Id": values["target_id"], "Arn": values["arn"]}
    target |= {"RoleArn": values["role_arn"]} if rule.starts_a_machine else {}
    return asked, {"Rule": values["rule"], "Targets": [target]}


def test_rules_and_targets_are_within_the_limits_of_their_api(rule: Rule) -> None:
    if rule.rule.is_whole:
        asked, targets = _put(rule)
        assert beyond("events", "PutRuleRequest", asked) == beyond("events", "PutTargetsRequest", targets) == []
        own = [
            each for each in resources(_TARGET) if each.plan == rule.rule.plan and each.values["rule"] == asked["Name"]
        ]
        assert 1 <= len(own) <= MAX_TARGETS


@pytest.mark.parametrize(
    ("spoiled", "problem"),
    [
        ({"Name": "x" * 65}, "length less than or equal to 64"),
        ({"Name": "runs of dev"}, "regular expression pattern"),
        ({"Name": "runs", "Description": "x" * 513}, "length less than or equal to 512"),
        ({"Name": "runs", "Pattern": "{}"}, "'pattern' failed to satisfy constraint: there is no member of that name"),
        ({"Description": "runs"}, "Value null at 'name'"),
    ],
)
def test_a_spoiled_rule_is_noticed(spoiled: dict[str, str], problem: str) -> None:
    assert any(problem in line for line in beyond("events", "PutRuleRequest", spoiled))


# --- What the embedded cloud sends -----------------------------------------------------------------------------------


def differences(sent: Event, sample: Event, described: set[str]) -> Iterator[str]:
    """Where an event is not as AWS sends it: other fields, or other types of JSON.

    It may tell more than the example does, if the API answers it too, but then not null.
    """
    yield from (f"without {name}" for name in sample if name not in sent)
    yield from (f"{name} is unknown" for name in sent if name not in sample and name not in described)
    for name, value in sent.items():
        if name not in sample and value is None:
            yield f"{name} is null, and AWS does not send it"
        elif name in sample and _type(value) != _type(sample[name]):
            yield f"{name} is {_type(value)}, and {_type(sample[name])} on AWS"


def _type(value: Any) -> str:
    if re.fullmatch(r"\d{13}", str(value)):  # AWS writes them in both ways, see the notes of the samples
        return "milliseconds"
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(value)):
        return "a time of ISO 8601"
    return {bool: "a truth", dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(
        type(value), "a number"
    )


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Event]]:
    """Events of the embedded cloud, as a target without a transformer gets them."""
    found: list[Event] = []
    monkeypatch.setattr(events, "_deliver", lambda _rule, event, *_: found.append(json.loads(events._text({}, event))))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        boto3.client("events", region_name=REGION).put_rule(Name="all", EventPattern='{"source": [{"prefix": "aws."}]}')
        yield found


def _compare(sent: list[Event], sample: str, *, also: frozenset[str] = frozenset()) -> list[str]:
    (event,) = sent
    expected = SAMPLES[sample]["event"]
    described = members(*DESCRIBED["states" if sample.startswith("states") else sample])
    assert [event[name] for name in ("detail-type", "source")] == [expected[name] for name in ("detail-type", "source")]
    return [
        *differences(event, expected, set()),
        *differences(event["detail"], expected["detail"], described | also),
    ]


@pytest.mark.parametrize("sample", ["states-succeeded", *UNSUCCESSFUL])
def test_it_tells_of_an_ended_execution_as_aws_does(sample: str, sent: list[Event]) -> None:
    expected = SAMPLES[sample]["event"]["detail"]
    failed = expected["status"] == "FAILED"
    machine: Any = SimpleNamespace(arn=expected["stateMachineArn"])
    execution: Any = Execution(
        expected["name"],
        StateMachineType.STANDARD,
        f"{ROLE}/mine",
        expected["executionArn"],
        ACCOUNT,
        REGION,
        machine,
        datetime.fromtimestamp(expected["startDate"] / 1000, timezone.utc),
        None,
        {},
        expected["input"],
    )
    execution.exec_status = ExecutionStatus(expected["status"])
    execution.stop_date = datetime.fromtimestamp(expected["stopDate"] / 1000, timezone.utc)
    execution.output = json.loads(expected["output"] or "null")
    execution.error, execution.cause = ("States.TaskFailed", "It failed.") if failed else (None, None)
    stepfunctions._tell(execution)
    assert _compare(sent, sample) == []
    assert {name: sent[0]["detail"][name] for name in expected} == expected


@pytest.mark.parametrize(("status", "reason"), [("Completed", None), ("Failed", "AlgorithmError"), ("Stopped", None)])
def test_it_tells_of_an_ended_training_job_as_aws_does(status: str, reason: str | None, sent: list[Event]) -> None:
    sample = "sagemaker-training-job"
    job = TrainingJob(
        _request(sample, "CreateTrainingJobRequest"),
        account=ACCOUNT,
        region=REGION,
        partition="aws",
        on_change=partial(sagemaker._tell, ACCOUNT),
    )
    job.advance("Downloading")
    sent.clear()
    job.finish(status, status, reason=reason)
    assert _compare(sent, sample) == []
    assert ("FailureReason" in sent[0]["detail"]) == (status == "Failed")
    assert sent[0]["detail"]["Tags"] == {"sagefit:platform": "dev"}


def test_it_tells_of_an_ended_processing_job_as_aws_does(sent: list[Event]) -> None:
    sample = "sagemaker-processing-job"
    job = ProcessingJob(
        _request(sample, "CreateProcessingJobRequest"),
        account=ACCOUNT,
        region=REGION,
        partition="aws",
        on_change=partial(processing._tell, ACCOUNT),
    )
    job.start()
    sent.clear()
    job.finish("Failed", reason="InternalServerError")
    assert _compare(sent, sample) == []


def _request(sample: str, shape: str) -> dict[str, Any]:
    """The request that the job of a sample was made with."""
    fields = members("sagemaker", shape)
    asked = {name: value for name, value in SAMPLES[sample]["event"]["detail"].items() if name in fields}
    return asked | {"Tags": [{"Key": "sagefit:platform", "Value": "dev"}]}


@pytest.mark.parametrize(
    ("spoiled", "problem"),
    [
        ({"stopDate": "2019-02-26T19:42:21Z"}, "stopDate is a time of ISO 8601, and milliseconds on AWS"),
        ({"startDate": 1551225146.847}, "startDate is a number, and milliseconds on AWS"),
        ({"output": ""}, "output is a text, and null on AWS"),
        ({"inputDetails": True}, "inputDetails is a truth, and an object on AWS"),
        ({"state": "FAILED"}, "state is unknown"),
        ({"error": None}, "error is null, and AWS does not send it"),
    ],
)
def test_another_event_is_noticed(spoiled: dict[str, Any], problem: str) -> None:
    detail = SAMPLES["states-failed"]["event"]["detail"]
    described = members(*DESCRIBED["states"])
    assert list(differences(detail, detail, described)) == []
    assert list(differences(detail | spoiled, detail, described)) == [problem]
    (lost,) = differences({name: value for name, value in detail.items() if name != "input"}, detail, described)
    assert lost == "without input"
