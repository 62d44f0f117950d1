"""What a training job tells CloudWatch: its log lines, the metrics found in them, and how much of a host it uses.

All of it is sent in the name of the job's role. Where the role may not, the job runs, and what it would tell is lost.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from botocore.exceptions import ClientError

from sagefit_cloud import clients

_LOG = logging.getLogger(__name__)
NAMESPACE = LOG_GROUP = "/aws/sagemaker/TrainingJobs"
_EVENT_LIMIT = 256 * 1024 - 26
_BATCH = 500


@dataclass
class JobLog:
    """One host's log stream. Lines come from the host's thread and leave with :meth:`flush`."""

    region: str
    role: str
    stream: str
    group: str = LOG_GROUP
    _lines: list[tuple[int, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _made: bool = False

    def add(self, line: str) -> None:
        """Take one line."""
        if line:
            with self._lock:
                self._lines.append((int(time.time() * 1000), line.encode()[:_EVENT_LIMIT].decode(errors="ignore")))

    def flush(self) -> None:
        """Write what came in."""
        with self._lock:
            lines, self._lines = self._lines, []
        with _lost_without_permission(f"logs of {self.stream}"):
            self._send(lines)

    def _send(self, lines: list[tuple[int, str]]) -> None:
        logs = clients.for_role("logs", self.region, self.role)
        if not self._made:
            _ignore_existing(logs.create_log_group, logGroupName=self.group)
            _ignore_existing(logs.create_log_stream, logGroupName=self.group, logStreamName=self.stream)
            self._made = True
        for start in range(0, len(lines), _BATCH):
            events = [{"timestamp": when, "message": line} for when, line in lines[start : start + _BATCH]]
            logs.put_log_events(logGroupName=self.group, logStreamName=self.stream, logEvents=events)


@contextmanager
def _lost_without_permission(what: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("AccessDenied", "AccessDeniedException"):
            raise
        _LOG.warning("%s are lost: %s", what, error)


def _ignore_existing(create: Any, **names: str) -> None:
    try:
        create(**names)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
            raise


class JobMetrics:
    """Metrics found in log lines by a job's metric definitions."""

    def __init__(self, region: str, role: str, job: str, definitions: list[dict[str, str]]) -> None:
        self._region, self._role, self._job = region, role, job
        self._patterns = [(item["Name"], re.compile(item["Regex"])) for item in definitions]
        self._found: list[dict[str, Any]] = []
        self._last: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    def scan(self, line: str) -> None:
        """Look for metrics in one line. The number is the pattern's first group."""
        for name, pattern in self._patterns:
            for match in pattern.finditer(line):
                try:
                    value = float(match.group(1))
                except (ValueError, IndexError, TypeError):
                    continue
                self.add(name, value)

    def add(self, name: str, value: float) -> None:
        """Take one value."""
        datum = {"MetricName": name, "Value": value, "Timestamp": datetime.now(timezone.utc)}
        with self._lock:
            self._found.append(datum)
            self._last[name] = datum

    def flush(self) -> None:
        """Publish what was found."""
        with self._lock:
            found, self._found = self._found, []
        data = [datum | {"Dimensions": _dimension("TrainingJobName", self._job)} for datum in found]
        publish(self._region, self._role, data)

    def final(self) -> list[dict[str, Any]]:
        """The last value of each metric."""
        with self._lock:
            return list(self._last.values())


def publish(region: str, role: str, data: list[dict[str, Any]]) -> None:
    """Put metrics into the namespace of training jobs."""
    cloudwatch = clients.for_role("cloudwatch", region, role)
    with _lost_without_permission("metrics"):
        for start in range(0, len(data), _BATCH):
            cloudwatch.put_metric_data(Namespace=NAMESPACE, MetricData=data[start : start + _BATCH])


def utilisation(host: str, shares: dict[str, float]) -> list[dict[str, Any]]:
    """Metrics of one host, ``<job>/algo-N``, in percent."""
    time_now = datetime.now(timezone.utc)
    return [
        {
            "MetricName": name,
            "Value": value,
            "Unit": "Percent",
            "Timestamp": time_now,
            "Dimensions": _dimension("Host", host),
        }
        for name, value in shares.items()
    ]


def disk_percent(folder: str) -> float:
    """How full the disk below a folder is."""
    usage = shutil.disk_usage(folder)
    return 100 * usage.used / usage.total


def _dimension(name: str, value: str) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value}]
