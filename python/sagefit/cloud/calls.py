"""The log of API calls: what was called, when, whether it could change anything, and how it was answered."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from sagefit.cloud import paths

_READ_VERBS = (
    "Get",
    "List",
    "Describe",
    "Head",
    "BatchGet",
    "BatchDescribe",
    "BatchCheck",
    "Search",
    "Query",
    "Scan",
    "Lookup",
    "Select",
    "Filter",
    "Preview",
    "Estimate",
    "Simulate",
    "Validate",
    "Verify",
    "Test",
)
# Calls that hand out a result and change nothing, although their verb does not say so.
_READS = {
    "AssumeRole",
    "AssumeRoleWithWebIdentity",
    "Encrypt",
    "Decrypt",
    "GenerateDataKey",
    "DecodeAuthorizationMessage",
}


@dataclass(frozen=True)
class Call:
    """One API call."""

    time: str
    service: str
    action: str
    kind: Literal["read", "write"]
    status: int


def kind_of(action: str, method: str) -> Literal["read", "write"]:
    """Whether a call could change anything: by its verb, and by its HTTP method where that is no POST."""
    if action.startswith(_READ_VERBS) or action in _READS:
        return "read"
    return "read" if method in ("GET", "HEAD", "OPTIONS") else "write"


class CallLog:
    """Appends calls to a file, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w", buffering=1, opener=paths.private)  # noqa: SIM115 - open as long as the cloud
        self._lock = threading.Lock()
        self.count = 0

    def add(self, began: datetime, service: str, action: str, method: str, status: int) -> None:
        """Write one call down."""
        time = began.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        call = Call(time, service, action, kind_of(action, method), status)
        with self._lock:
            self._file.write(json.dumps(asdict(call)) + "\n")
            self.count += 1


def calls_path() -> Path:
    """The file the running (or last) cloud wrote its calls to."""
    return paths.cloud_home() / "calls.jsonl"


def read_calls() -> Iterator[Call]:
    """Every call since the cloud was started; after it ended, the calls of the last one."""
    try:
        with calls_path().open() as file:
            for line in file:
                if line.endswith("\n"):  # the last one may just be being written
                    yield Call(**json.loads(line))
    except FileNotFoundError:
        return
