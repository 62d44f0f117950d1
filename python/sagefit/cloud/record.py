"""The record a running cloud leaves in ``cloud.json``, and how to tell whether it still is that cloud."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import psutil

from sagefit.cloud import paths
from sagefit.cloud.keys import Key
from sagefit.processes import Identity, running

INSTANCE_VARIABLE = "SAGEFIT_CLOUD_INSTANCE"
STATUS_PATH = "/_sagefit/status"


@dataclass(frozen=True)
class Record:
    """Who the running cloud is: enough to find it, and to be sure that it is it."""

    pid: int
    process_started: float
    port: int
    instance: str
    access_key: str
    secret_key: str = field(repr=False)
    memory_scale: float
    start_seconds: float
    clock: float
    faults: str | None
    process_since_boot: float = 0.0
    process_boot: str = ""

    @property
    def process(self) -> Identity:
        """The server."""
        return Identity(self.pid, self.process_started, self.process_since_boot, self.process_boot)

    @property
    def endpoint(self) -> str:
        """What ``AWS_ENDPOINT_URL`` has to be."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> Key:
        """The key of whoever runs it."""
        return Key(self.access_key, self.secret_key)


def path() -> Path:
    """The file the record is in."""
    return paths.cloud_home() / "cloud.json"


def save(record: Record) -> None:
    """Write the record so that nobody ever reads half of it."""
    target = path()
    scratch = target.with_suffix(f".{os.getpid()}.tmp")
    with open(scratch, "w", opener=paths.private) as file:
        json.dump(asdict(record), file, indent=2)
    scratch.replace(target)


def load() -> Record | None:
    """The record, or None where there is none that can be read."""
    try:
        data = json.loads(path().read_text())
        return Record(**{each.name: data[each.name] for each in fields(Record) if each.name in data})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove() -> None:
    """Forget the record."""
    with contextlib.suppress(FileNotFoundError):
        path().unlink()


def process_of(record: Record) -> psutil.Process | None:
    """The recorded process if it still runs: same number and same start time, so no later user of the number."""
    return record.process.process()


def ask(record: Record, timeout: float = 5.0) -> dict[str, Any] | None:
    """What the server on the recorded port says about itself; None if it is silent or somebody else."""
    connection = http.client.HTTPConnection("127.0.0.1", record.port, timeout=timeout)
    try:
        connection.request("GET", STATUS_PATH, headers=_signed(record.access_key))
        response = connection.getresponse()
        answer = json.loads(response.read()) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return answer if isinstance(answer, dict) and answer.get("instance") == record.instance else None


def _signed(access_key: str) -> dict[str, str]:
    """What names the key in a request of one's own; the cloud checks no signature."""
    scope = f"Credential={access_key}/20000101/us-east-1/sagefit/aws4_request"
    return {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=none"}


def sweep(instance: str, grace: float = 3.0) -> int:
    """Kill what is left of a cloud: every process that carries its mark. Returns how many there were."""
    left = [process for process in running() if _carries(process, instance)]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=grace)
    return len(left)


def _carries(process: psutil.Process, instance: str) -> bool:
    if process.pid == os.getpid():
        return False
    try:
        return process.environ().get(INSTANCE_VARIABLE) == instance
    except (psutil.Error, OSError):
        return False
