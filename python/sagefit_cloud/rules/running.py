"""Rules of what runs jobs: state machines (Step Functions), schedules (EventBridge Scheduler), event rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from moto.events.models import events_backends

from sagefit.iam.evaluate import Call
from sagefit_cloud import authorization
from sagefit_cloud.rules.table import Answers, Place, Request, Said, among_others, of

_MACHINE = ("stepfunctions:CreateStateMachine", "stepfunctions:UpdateStateMachine")
_SCHEDULE = ("scheduler:CreateSchedule", "scheduler:UpdateSchedule")
_TARGETS = "events:PutTargets"
_LONGEST_STATE_NAME = 80
_MOST_TARGETS = 5
_LOG_DELIVERY = (
    *(f"logs:{verb}LogDelivery" for verb in ("Create", "Get", "Update", "Delete")),
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
)
# Least and greatest number of each field of a cron expression, and its names.
_CRON: list[tuple[int, int, tuple[str, ...]]] = [
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")),
    (1, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")),
    (1970, 2199, ()),
]
_AT = r"at\(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\)"


def _definition(request: Request) -> dict[str, Any]:
    """The definition; empty where a request has none, or one that is no JSON, to which moto has an answer."""
    try:
        found = json.loads(request.get("definition") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def machines(machine: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A machine and those inside of its Parallel and Map states, each with its place."""
    yield path, machine
    for name, state in machine.get("States", {}).items():
        where = f"{path}/States/{name}"
        for index, branch in enumerate(state.get("Branches", [])):
            yield from machines(branch, f"{where}/Branches[{index}]")
        for part in ("ItemProcessor", "Iterator"):
            if part in state:
                yield from machines(state[part], f"{where}/{part}")


def transitions(machine: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    """Field, target and place of each transition of one machine."""
    if "StartAt" in machine:
        yield "StartAt", machine["StartAt"], f"{path}/StartAt"
    for name, state in machine.get("States", {}).items():
        where = f"{path}/States/{name}"
        for field in ("Next", "Default"):
            if field in state:
                yield field, state[field], f"{where}/{field}"
        for part in ("Choices", "Catch"):
            for index, rule in enumerate(state.get(part, [])):
                if "Next" in rule:
                    yield "Next", rule["Next"], f"{where}/{part}[{index}]/Next"


class Diagnostic(NamedTuple):
    """What is wrong with a definition, and where."""

    code: str
    message: str
    location: str


def diagnostics(definition: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """All that is wrong with a definition whose grammar is right."""
    for finds in (_missing_targets, _lost_states, _endless, _long_names, _names_used_twice, _early_catches):
        for path, machine in machines(definition):
            yield from finds(machine, path)


def _refused(request: Request, finds: Callable[[Mapping[str, Any], str], Iterator[Diagnostic]]) -> Answers:
    for path, machine in machines(_definition(request)):
        for code, message, location in finds(machine, path):
            yield Said(f"Invalid State Machine Definition: '{code}: {message} at {location}'", "InvalidDefinition")


def _missing_targets(machine: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    for field, target, where in transitions(machine, path):
        if target not in machine.get("States", {}):
            yield Diagnostic("MISSING_TRANSITION_TARGET", f"Missing '{field}' target: {target}", where)


def _lost_states(machine: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    reached = {target for _, target, _ in transitions(machine, path)}
    for name in machine.get("States", {}):
        if name not in reached:
            message = f'State "{name}" is not reachable.'
            yield Diagnostic("MISSING_TRANSITION_TARGET", message, f"{path}/States/{name}")


def _endless(machine: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    states = machine.get("States", {}).values()
    if states and not any(state.get("End") or state.get("Type") in ("Succeed", "Fail") for state in states):
        yield Diagnostic("MISSING_END_STATE", "Workflow has no terminal state", path or "null")


def _long_names(machine: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    for name in machine.get("States", {}):
        if len(name) > _LONGEST_STATE_NAME:
            yield Diagnostic("INVALID_STATE_NAME", f"Invalid State name: {name}", f"{path}/States/{name}")


def _names_used_twice(machine: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    if path:
        return  # names count in the whole machine, which is looked at from its top
    seen: set[str] = set()
    for where, part in machines(machine):
        for name in part.get("States", {}):
            if name in seen:
                yield Diagnostic("DUPLICATE_STATE_NAME", f"Duplicate State name: {name}", f"{where}/States/{name}")
            seen.add(name)


def _early_catches(machine: Mapping[str, Any], path: str) -> Iterator[Diagnostic]:
    for name, state in machine.get("States", {}).items():
        for part in ("Catch", "Retry"):
            rules = state.get(part, [])
            for index, rule in enumerate(rules):
                errors = rule.get("ErrorEquals", [])
                if "States.ALL" in errors and (len(errors) > 1 or index < len(rules) - 1):
                    where = f"{path}/States/{name}/{part}[{index}]/ErrorEquals[{errors.index('States.ALL')}]"
                    message = "States.ALL must appear alone and at end of list"
                    yield Diagnostic("SCHEMA_VALIDATION_FAILED", message, where)


@of(*_MACHINE)
def targets_of_transitions(request: Request) -> Answers:
    """Each transition leads to a state."""
    return _refused(request, _missing_targets)


@of(*_MACHINE)
def ways_to_states(request: Request) -> Answers:
    """Something leads to each state."""
    return _refused(request, _lost_states)


@of(*_MACHINE)
def end_of_a_machine(request: Request) -> Answers:
    """A state machine has a state that ends it."""
    return _refused(request, _endless)


@of(*_MACHINE)
def names_of_states(request: Request) -> Answers:
    """The name of a state has 80 characters at most."""
    return _refused(request, _long_names)


@of(*_MACHINE)
def names_used_once(request: Request) -> Answers:
    """The name of a state is used once in a state machine, also within its Map and Parallel states."""
    return _refused(request, _names_used_twice)


@of(*_MACHINE)
def last_of_the_catches(request: Request) -> Answers:
    """What catches or repeats all errors is the last of its kind."""
    return _refused(request, _early_catches)


@among_others(*_MACHINE)
def role_of_a_machine(request: Request, place: Place) -> Answers:
    """Step Functions may assume the role of a state machine."""
    role = request.get("roleArn")
    source = f"arn:{place.partition}:states:{place.region}:{place.account}:stateMachine:{request.get('name', '')}"
    source = request.get("stateMachineArn", source)
    if role and not authorization.may_assume(role, "states", place.region, source):
        yield Said(
            "Neither the global service principal states.amazonaws.com, nor the regional one is authorized to assume "
            "the provided role.",
            "AccessDeniedException",
        )


@among_others(*_MACHINE)
def role_that_logs(request: Request, _: Place) -> Answers:
    """The role of a state machine that logs may have its log delivered."""
    role, logging = request.get("roleArn"), request.get("loggingConfiguration", {})
    if role and logging.get("level", "OFF") != "OFF" and authorization.denial(role, map(Call, _LOG_DELIVERY)):
        yield Said(
            "The state machine IAM Role is not authorized to access the Log Destination", "AccessDeniedException"
        )


@of(*_MACHINE)
def destination_of_a_log(request: Request) -> Answers:
    """A log has exactly one destination."""
    logging = request.get("loggingConfiguration", {})
    if logging.get("level", "OFF") != "OFF" and len(logging.get("destinations", [])) != 1:
        yield Said(
            "Invalid Logging Configuration: Must specify exactly one Log Destination.", "InvalidLoggingConfiguration"
        )


@of(*_SCHEDULE)
def expression_of_a_schedule(request: Request) -> Answers:
    """A schedule is a rate, a cron expression whose numbers are in their ranges, or a moment."""
    expression = request["ScheduleExpression"]
    fits = re.fullmatch(rf"rate\([1-9]\d* (minute|hour|day)s?\)|{_AT}", expression)
    if not fits and not _is_cron(expression):
        yield f"Invalid Schedule Expression {expression}."


def _is_cron(expression: str) -> bool:
    found = re.fullmatch(r"cron\((.+)\)", expression)
    fields = found[1].split() if found else []
    if len(fields) != len(_CRON) or (fields[2] == "?") == (fields[4] == "?"):
        return False
    days = (2, 4)
    return all(
        field == "?" if field == "?" and index in days else all(_is_part(part, index) for part in field.split(","))
        for index, field in enumerate(fields)
    )


def _is_part(part: str, index: int) -> bool:
    """Whether one part of a list fits a field: ``*``, ``5``, ``1-5``, ``*/10``, ``MON``, ``L``, ``15W``, ``2#1``."""
    least, most, names = _CRON[index]
    body, _, step = part.partition("/")
    if "/" in part and not (step.isdigit() and int(step) > 0):
        return False
    special = {2: r"L(-\d+)?|LW|\d+W", 4: r"L|\w+L|\w+#[1-5]"}.get(index)
    if body == "*" or (special and re.fullmatch(special, body)):
        return True
    return all(end.upper() in names or (end.isdigit() and least <= int(end) <= most) for end in body.split("-", 1))


@of(*_SCHEDULE)
def time_zone_of_a_schedule(request: Request) -> Answers:
    """A time zone has a name of the IANA's list."""
    zone = request.get("ScheduleExpressionTimezone", "UTC")
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        yield f"Invalid Schedule Expression Timezone {zone}."


@of(*_SCHEDULE)
def window_of_a_schedule(request: Request) -> Answers:
    """A flexible window has a length, and one that is off has none."""
    window = request["FlexibleTimeWindow"]
    if (window["Mode"] == "FLEXIBLE") != ("MaximumWindowInMinutes" in window):
        yield "MaximumWindowInMinutes is required for a FlexibleTimeWindow that is FLEXIBLE, and for no other"


@of(*_SCHEDULE)
def input_of_a_schedule(request: Request) -> Answers:
    """What a state machine is started with is JSON."""
    target = request["Target"]
    if ":states:" in target["Arn"] or ":aws-sdk:" in target["Arn"]:
        try:
            json.loads(target.get("Input") or "{}")
        except ValueError:
            yield "Invalid RequestJson provided. Reason The provided Input is not valid JSON."


@among_others(*_SCHEDULE)
def role_of_a_schedule(request: Request, place: Place) -> Answers:
    """EventBridge Scheduler may assume the role of a schedule."""
    group = request.get("GroupName", "default")
    source = f"arn:{place.partition}:scheduler:{place.region}:{place.account}:schedule-group/{group}"
    if not authorization.may_assume(request["Target"]["RoleArn"], "scheduler", place.region, source):
        yield "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."


@of(_TARGETS)
def one_input_of_a_target(request: Request) -> Answers:
    """A target gets a constant, a part of the event, or a text made of it."""
    for target in request["Targets"]:
        if len([name for name in ("Input", "InputPath", "InputTransformer") if name in target]) > 1:
            yield f"Only one of Input, InputPath, or InputTransformer must be provided for target {target['Id']}."


@of(_TARGETS)
def placeholders_of_a_text(request: Request) -> Answers:
    """A text is made of what the target reads from the event."""
    for target in request["Targets"]:
        transformer = target.get("InputTransformer", {})
        for name in re.findall(r"<([A-Za-z0-9_.-]+)>", transformer.get("InputTemplate", "")):
            if name not in transformer.get("InputPathsMap", {}) and not name.startswith("aws.events."):
                yield f"InputTemplate for target {target['Id']} contains invalid placeholder {name}."


@of(_TARGETS)
def role_of_a_target(request: Request) -> Answers:
    """A rule that starts a state machine has a role."""
    for target in request["Targets"]:
        if ":states:" in target["Arn"] and "RoleArn" not in target:
            yield f"RoleArn is required for target {target['Arn']}."


@among_others(_TARGETS)
def role_of_a_rule(request: Request, place: Place) -> Answers:
    """EventBridge may assume the role of a target."""
    source = f"arn:{place.partition}:events:{place.region}:{place.account}:rule/{request['Rule']}"
    for target in request["Targets"]:
        role = target.get("RoleArn")
        if role and not authorization.may_assume(role, "events", place.region, source):
            yield f"Provided role '{role}' cannot be assumed by principal 'events.amazonaws.com'."


@among_others(_TARGETS)
def number_of_targets(request: Request, place: Place) -> Answers:
    """A rule has five targets at most."""
    bus = events_backends[place.account][place.region].event_buses.get("default")
    rule = bus.rules.get(request["Rule"]) if bus else None
    known = {target["Id"] for target in rule.targets} if rule else set()
    if len(known | {target["Id"] for target in request["Targets"]}) > _MOST_TARGETS:
        yield Said("The requested resource exceeds the maximum number allowed.", "LimitExceededException")
