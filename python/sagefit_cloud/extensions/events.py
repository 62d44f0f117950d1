"""EventBridge: the events that services send by themselves, and what moto's rules do not know as targets.

These are topics and state machines; an execution starts only where the role of the target may start it. A rule whose
machine reports what starts the same machine again has no end on AWS, and costs money there. Here it is stopped after
some rounds, and the log says so.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-patterns-best-practices.html
"""

from __future__ import annotations

import copy
import json
import logging
import uuid
from datetime import datetime
from typing import Any

from jsonpath_ng.ext.parser import parse
from moto.events.models import Rule, events_backends
from moto.sns.models import sns_backends

from sagefit.iam.evaluate import Call
from sagefit_cloud import authorization, clients
from sagefit_cloud.records import now

_LOG = logging.getLogger(__name__)
_BUS = "default"
_ROUNDS = 16
_round_of: dict[str, int] = {}  # executions that were started by the end of one: how many were before them


def send(*, account: str, region: str, source: str, kind: str, resource: str, detail: dict[str, Any]) -> None:
    """Put an event on the default bus, as a service does it: for rules, topics, queues and log groups."""
    event: dict[str, Any] = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": kind,
        "source": source,
        "account": account,
        "time": now().timestamp(),
        "region": region,
        "resources": [resource],
        "detail": json.loads(json.dumps(detail, default=_milliseconds)),
        "ingestion-time": now().timestamp(),
    }
    for rule in list(events_backends[account][region].event_buses[_BUS].rules.values()):
        try:
            _deliver(rule, event, account, region)
        except Exception:  # what cannot be delivered is no reason to fail what sent it
            _LOG.exception("rule %s", rule.name)


def _milliseconds(value: datetime) -> int:
    return int(value.timestamp() * 1000)


def _deliver(rule: Rule, event: dict[str, Any], account: str, region: str) -> None:
    message: Any = event
    if rule.state != "ENABLED" or not rule.event_pattern.matches_event(message):
        return
    others = copy.copy(rule)
    others.targets = [target for target in rule.targets if not _reached(target, event, account, region)]
    others.send_to_targets(message)


def _reached(target: dict[str, Any], event: dict[str, Any], account: str, region: str) -> bool:
    """Whether a target is of a kind that moto's rules do not know; it then has the event."""
    arn = target["Arn"]
    if ":sns:" in arn:
        sns_backends[account][region].publish(message=_text(target, event), arn=arn)
    elif ":states:" in arn:
        if why := authorization.denial(target["RoleArn"], [Call("states:StartExecution", arn)], "events"):
            _LOG.warning("%s is not started: %s", arn, why)
        else:
            _start(arn, _text(target, event), event, region)
    else:
        return False
    return True


def _start(machine: str, given: str, event: dict[str, Any], region: str) -> None:
    rounds = _round_of.get(event["detail"].get("executionArn", ""), 0) + 1
    if rounds > _ROUNDS:
        _LOG.warning("%s is not started: its runs start each other without end", machine)
        return
    name = str(uuid.uuid4())
    _round_of[f"{machine.replace(':stateMachine:', ':execution:')}:{name}"] = rounds  # before it can have ended
    clients.internal("stepfunctions", region).start_execution(stateMachineArn=machine, name=name, input=given)


def _text(target: dict[str, Any], event: dict[str, Any]) -> str:
    """The event, or what the target's input transformer makes of it."""
    shown = {name: value for name, value in event.items() if name != "ingestion-time"}
    shown["time"] = now().isoformat(timespec="seconds").replace("+00:00", "Z")
    transformer = target.get("InputTransformer")
    if not transformer:
        return json.dumps(shown)
    text = str(transformer["InputTemplate"])
    for name, path in transformer.get("InputPathsMap", {}).items():
        found = [match.value for match in parse(path).find(shown)]
        value = found[0] if found else ""
        text = text.replace(f"<{name}>", value if isinstance(value, str) else json.dumps(value))
    return text
