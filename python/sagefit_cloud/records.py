"""What the records of training, processing and tuning jobs have in common."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from sagefit.cloud.faults import Outcome
from sagefit_cloud import clients

ENDED = frozenset({"Completed", "Failed", "Stopped"})


def now() -> datetime:
    """The time, with its zone."""
    return datetime.now(timezone.utc)


class JobRecord:
    """One job. Threads write to it, API calls read it: every access goes through the lock."""

    def __init__(
        self, request: Mapping[str, Any], name: str, resource: str, *, account: str, region: str, partition: str
    ) -> None:
        """Keep a request. ``resource`` is the end of its ARN, such as ``training-job/NAME``."""
        self.request = dict(request)
        self.name = name
        self.region = region
        self.arn = f"arn:{partition}:sagemaker:{region}:{account}:{resource}"
        self.tags: list[dict[str, str]] = list(request.get("Tags", []))  # moto's AddTags and ListTags work on this
        self.status = "InProgress"
        self.created = self._modified = now()
        self._lock = threading.RLock()

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.status not in ENDED


class ContainerJob(JobRecord, abc.ABC):
    """One job whose containers an executor thread runs."""

    def __init__(
        self, request: Mapping[str, Any], name: str, resource: str, on_change: Callable[[Any], None], **where: str
    ) -> None:
        super().__init__(request, name, resource, **where)
        self.fault: Outcome | None = None
        self.stop_requested = threading.Event()
        self._on_change = on_change

    @property
    @abc.abstractmethod
    def isolated(self) -> bool:
        """Whether its containers have no network and no credentials."""

    @property
    @abc.abstractmethod
    def output_key(self) -> str | None:
        """The key that its output is encrypted with; None for that of the bucket."""

    @property
    @abc.abstractmethod
    def volume_key(self) -> str | None:
        """The key that the volumes of its hosts are encrypted with; None for one that AWS owns."""

    @property
    def role(self) -> str:
        """The ARN of its execution role."""
        return str(self.request["RoleArn"])

    @property
    def credentials(self) -> str | None:
        """The role whose credentials its containers get; isolated ones get none."""
        return None if self.isolated else self.role

    @property
    def s3(self) -> Any:
        """S3 with the rights of its role."""
        return clients.for_role("s3", self.region, self.role)

    def request_stop(self) -> None:
        """Ask its executor to stop it."""
        with self._lock:
            if not self.active or self.stop_requested.is_set():
                return
            self.status = "Stopping"
            self._stopping()
            self.stop_requested.set()
        self._on_change(self)

    def _stopping(self) -> None:
        """Note that it has been asked to stop; the lock is held."""
        self._modified = now()
