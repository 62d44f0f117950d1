"""EventBridge Scheduler: starts the executions of state machines that are due.

What was due while nobody looked, because the machine slept or time passes faster here, is started once.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from moto.scheduler.models import Schedule, scheduler_backends

from sagefit.iam.evaluate import Call
from sagefit.job.schedule_times import is_due
from sagefit_cloud import authorization, clients, permissions
from sagefit_cloud.rules import Place

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
_START = ":aws-sdk:sfn:startExecution"


@dataclass(frozen=True)
class Clock:
    """The time of schedules, of which ``speed`` seconds pass in each second."""

    speed: float = 1.0
    _began: float = field(default_factory=time.time)

    def now(self) -> datetime:
        """The time."""
        passed = (time.time() - self._began) * self.speed
        return datetime.fromtimestamp(self._began, timezone.utc) + timedelta(seconds=passed)


class Schedules(threading.Thread):
    """Looks every second which schedules are due."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(name="schedules", daemon=True)
        self._clock = clock
        self._closing = threading.Event()
        self._known: dict[str, tuple[Any, datetime]] = {}  # by ARN: what says when, and since when it says so

    def run(self) -> None:
        """Look until the end."""
        since = self._clock.now()
        while not self._closing.wait(_LOOK_SECONDS):
            until = self._clock.now()
            for schedule, place in _all():
                try:
                    self._look(schedule, place, since, until)
                except Exception:  # one that cannot be read or started is no reason to start no other
                    _LOG.exception("schedule %s", schedule.name)
            since = until

    def close(self) -> None:
        """End."""
        self._closing.set()

    def _look(self, schedule: Schedule, place: Place, since: datetime, until: datetime) -> None:
        zone = schedule.schedule_expression_timezone
        says = schedule.creation_date, schedule.schedule_expression, zone, schedule.start_date
        known, began = self._known.get(schedule.arn, (None, until))
        if known != says:
            self._known[schedule.arn] = says, until
            began, since = until, until - timedelta(microseconds=1)  # a rate has its first time now
        if schedule.state != "ENABLED":
            return
        if schedule.start_date:
            began = datetime.fromtimestamp(float(schedule.start_date), timezone.utc)
        if schedule.end_date and until > datetime.fromtimestamp(float(schedule.end_date), timezone.utc):
            return
        if is_due(schedule.schedule_expression, zone, began, since, until):
            _start(schedule, place, until)
            if schedule.action_after_completion == "DELETE" and schedule.schedule_expression.startswith("at("):
                backend = scheduler_backends[place.account][place.region]
                backend.delete_schedule(schedule.group_name, schedule.name)


def _all() -> Iterator[tuple[Schedule, Place]]:
    for account, regions in list(scheduler_backends.items()):
        for region, backend in list(regions.items()):
            for group in list(backend.schedule_groups.values()):
                for schedule in list(group.schedules.values()):
                    yield schedule, Place(account, region, schedule.arn.split(":")[1])


def _start(schedule: Schedule, place: Place, at: datetime) -> None:
    """Start the execution that a schedule asks for, where its role may."""
    request = _request(schedule, at)
    if request is None:
        _LOG.warning("%s is not started: this cloud starts executions of state machines only", schedule.target["Arn"])
        return
    calls = [Call("states:StartExecution", request["stateMachineArn"])]
    if schedule.kms_key_arn:
        calls += permissions.key_use("Decrypt", schedule.kms_key_arn, "scheduler", place)
    if why := authorization.denial(schedule.target["RoleArn"], calls, "scheduler"):
        _LOG.warning("%s is not started: %s", request["stateMachineArn"], why)
        return
    clients.internal("stepfunctions", place.region).start_execution(**request)


def _request(schedule: Schedule, at: datetime) -> dict[str, Any] | None:
    """The request of StartExecution, with the keywords of the input replaced; None for any other target.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
    """
    target: dict[str, Any] = schedule.target
    text = target.get("Input") or "{}"
    for keyword, value in {
        "schedule-arn": schedule.arn,
        "scheduled-time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "execution-id": str(uuid.uuid4()),
        "attempt-number": "1",
    }.items():
        text = text.replace(f"<aws.scheduler.{keyword}>", value)
    if target["Arn"].endswith(_START):
        return {f"{name[0].lower()}{name[1:]}": value for name, value in json.loads(text).items()}
    if ":stateMachine:" in target["Arn"]:
        return {"stateMachineArn": target["Arn"], "input": text}
    return None
