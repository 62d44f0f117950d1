"""The record of one processing job: what was asked, how far it is, and what the API says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sagefit_cloud.records import ContainerJob, now

_TEXT_LIMIT = 1024
_LONGEST = 86400.0  # seconds, where the request sets no limit


class ProcessingJob(ContainerJob):
    """One processing job."""

    def __init__(
        self,
        request: Mapping[str, Any],
        *,
        account: str,
        region: str,
        partition: str,
        on_change: Callable[[ProcessingJob], None] = lambda _job: None,
    ) -> None:
        name = str(request["ProcessingJobName"])
        where = {"account": account, "region": region, "partition": partition}
        super().__init__(request, name, f"processing-job/{name}", on_change, **where)
        self._started: datetime | None = None
        self._ended: datetime | None = None
        self._reason = self._message = ""

    @property
    def cluster(self) -> dict[str, Any]:
        """Its instances: type, count, volume."""
        return dict(self.request["ProcessingResources"]["ClusterConfig"])

    @property
    def output_key(self) -> str | None:
        """The key that all its outputs are encrypted with; None for that of the bucket."""
        return self.request.get("ProcessingOutputConfig", {}).get("KmsKeyId") or None

    @property
    def volume_key(self) -> str | None:
        """The key that the volumes of its hosts are encrypted with; None for one that AWS owns."""
        return self.cluster.get("VolumeKmsKeyId") or None

    @property
    def isolated(self) -> bool:
        """Whether its containers have no network and no credentials."""
        return bool(self.request.get("NetworkConfig", {}).get("EnableNetworkIsolation"))

    @property
    def max_runtime(self) -> float:
        """Seconds it may run."""
        return float(self.request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", _LONGEST))

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """Where its outputs lie, and where they go."""
        return [output["S3Output"] for output in self.request.get("ProcessingOutputConfig", {}).get("Outputs", [])]

    def start(self) -> None:
        """Its containers run."""
        with self._lock:
            self._started = self._modified = now()
        self._on_change(self)

    def finish(self, status: str, *, reason: str = "", message: str = "") -> None:
        """End, for good; ``message`` is what the container left in ``/opt/ml/output/message``."""
        with self._lock:
            self._reason, self._message = reason[:_TEXT_LIMIT], message[:_TEXT_LIMIT]
            self._ended = self._modified = now()
            self.status = status
        self._on_change(self)

    def describe(self) -> dict[str, Any]:
        """The answer of ``DescribeProcessingJob``: every field of the request, and where it got to."""
        with self._lock:
            optional = {
                "ProcessingStartTime": self._started,
                "ProcessingEndTime": self._ended,
                "FailureReason": self._reason,
                "ExitMessage": self._message,
            }
            return (
                {key: value for key, value in self.request.items() if key != "Tags"}
                | {
                    "ProcessingJobArn": self.arn,
                    "ProcessingJobStatus": self.status,
                    "CreationTime": self.created,
                    "LastModifiedTime": self._modified,
                }
                | {key: value for key, value in optional.items() if value}
            )

    def summary(self) -> dict[str, Any]:
        """Its line in ``ListProcessingJobs``."""
        shown = (
            "ProcessingJobName", "ProcessingJobArn", "CreationTime", "ProcessingEndTime", "LastModifiedTime",
            "ProcessingJobStatus", "FailureReason", "ExitMessage",
        )  # fmt: skip
        described = self.describe()
        return {name: described[name] for name in shown if name in described}
