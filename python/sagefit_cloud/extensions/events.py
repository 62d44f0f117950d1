"""EventBridge: the events that services send by themselves, and topics as targets (moto's rules do not know topics)."""

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

from sagefit_cloud.records import now

_LOG = logging.getLogger(__name__)
_BUS = "default"


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
    topics = [target for target in rule.targets if ":sns:" in target["Arn"]]
    for target in topics:
        sns_backends[account][region].publish(message=_text(target, event), arn=target["Arn"])
    others = copy.copy(rule)
    others.targets = [target for target in rule.targets if target not in topics]
    others.send_to_targets(message)


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
