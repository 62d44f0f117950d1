"""The record of one training job: what was asked, how far it is, and what the API says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sagefit_cloud.records import ContainerJob, now

HOMOGENEOUS = "homogeneousCluster"
# What a job says of each secondary status. AWS documents those of Starting and Training; those of Downloading,
# Uploading and Completed are in logs that people published; what it says of the others nobody published.
_MESSAGES = {
    "Starting": "Starting the training job",
    "Pending": "Waiting for instances",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Uploading": "Uploading generated training model",
    "Interrupted": "Training job interrupted: spot capacity was reclaimed",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided",
}
_PREPARED = "Preparing the instances for training"  # what Starting says at its end
_REASON_LIMIT = 1024


class InstanceGroup(NamedTuple):
    """Some of a job's instances, all of one type."""

    name: str
    instance_type: str
    size: int


class TrainingJob(ContainerJob):
    """One training job."""

    def __init__(
        self,
        request: Mapping[str, Any],
        *,
        account: str,
        region: str,
        partition: str,
        on_change: Callable[[TrainingJob], None] = lambda _job: None,
    ) -> None:
        name = str(request["TrainingJobName"])
        where = {"account": account, "region": region, "partition": partition}
        super().__init__(request, name, f"training-job/{name}", on_change, **where)
        self.ended: datetime | None = None
        self.has_model = False
        self.tuning_job_arn: str | None = None
        self.warm_pool_allowed = True
        self._transitions: list[dict[str, Any]] = []
        self._training_started: datetime | None = None
        self._reason: str | None = None
        self._metrics: list[dict[str, Any]] = []
        self._reused_by: str | None = None
        self.pool: str = self.name  # the job whose instances these once were, where a warm pool was handed on
        self._pool_until: datetime | None = None
        self._step("Starting")

    # -- what was asked -------------------------------------------------------------------------------------------

    @property
    def groups(self) -> list[InstanceGroup]:
        """Its instances by group; a job without groups is one group, named as AWS names it."""
        resources: dict[str, Any] = self.request["ResourceConfig"]
        groups = resources.get("InstanceGroups")
        if not groups:
            return [InstanceGroup(HOMOGENEOUS, resources["InstanceType"], resources["InstanceCount"])]
        return [InstanceGroup(g["InstanceGroupName"], g["InstanceType"], g["InstanceCount"]) for g in groups]

    @property
    def instance_type(self) -> str:
        """The type of its instances; of the first group where it has groups."""
        return self.groups[0].instance_type

    @property
    def instance_count(self) -> int:
        """How many instances it runs on."""
        return sum(group.size for group in self.groups)

    def instances_of(self, instance_type: str) -> int:
        """How many of its instances are of a type."""
        return sum(group.size for group in self.groups if group.instance_type == instance_type)

    @property
    def hosts(self) -> list[tuple[str, InstanceGroup]]:
        """The names of its hosts, ``algo-N`` through all groups, each with its group."""
        members = [group for group in self.groups for _ in range(group.size)]
        return [(f"algo-{number}", group) for number, group in enumerate(members, 1)]

    @property
    def spot(self) -> bool:
        """Whether it runs on spot capacity."""
        return bool(self.request.get("EnableManagedSpotTraining"))

    @property
    def isolated(self) -> bool:
        """Whether its containers have no network and no credentials."""
        return bool(self.request.get("EnableNetworkIsolation"))

    @property
    def max_runtime(self) -> float:
        """Seconds it may train."""
        return float(self.request["StoppingCondition"].get("MaxRuntimeInSeconds", 86400))

    @property
    def max_wait(self) -> float | None:
        """Seconds a spot job may take altogether."""
        value = self.request["StoppingCondition"].get("MaxWaitTimeInSeconds")
        return None if value is None else float(value)

    @property
    def output_uri(self) -> str:
        """Where its output goes: below the path that was asked for."""
        return f"{self.request['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{self.name}/output"

    @property
    def output_key(self) -> str | None:
        """The key that its output and its model are encrypted with; None for that of the bucket."""
        return self.request["OutputDataConfig"].get("KmsKeyId") or None

    @property
    def volume_key(self) -> str | None:
        """The key that the volumes of its hosts are encrypted with; None for one that AWS owns."""
        return self.request["ResourceConfig"].get("VolumeKmsKeyId") or None

    @property
    def compressed(self) -> bool:
        """Whether its output is packed."""
        return bool(self.request["OutputDataConfig"].get("CompressionType", "GZIP") != "NONE")

    @property
    def model_uri(self) -> str:
        """Where its model is, once it is."""
        return f"{self.output_uri}/{'model.tar.gz' if self.compressed else 'model/'}"

    # -- how far it is --------------------------------------------------------------------------------------------

    @property
    def secondary(self) -> str:
        """Its secondary status."""
        return str(self._transitions[-1]["Status"])

    def advance(self, secondary: str) -> None:
        """Go on to the next secondary status, unless it has been asked to stop meanwhile."""
        with self._lock:
            if self.stop_requested.is_set():
                return
            self._step(secondary)
        self._on_change(self)

    def finish(
        self,
        status: str,
        secondary: str,
        *,
        reason: str | None = None,
        metrics: list[dict[str, Any]] | None = None,
        has_model: bool = False,
    ) -> None:
        """End, for good."""
        with self._lock:
            self._reason = reason[:_REASON_LIMIT] if reason else None
            self._metrics = metrics or []
            self.has_model = has_model
            self._step(secondary, self._reason)
            self.ended = self._transitions[-1]["EndTime"] = self._modified
            self.status = status
        self._on_change(self)

    def _stopping(self) -> None:
        self._step("Stopping")

    def _step(self, secondary: str, message: str | None = None) -> None:
        time = now()
        if self._transitions:
            self._transitions[-1]["EndTime"] = time
            if self.secondary == "Starting" and secondary in ("Downloading", "Training"):
                self._transitions[-1]["StatusMessage"] = _PREPARED
        text = message or _MESSAGES[secondary]
        self._transitions.append({"Status": secondary, "StartTime": time, "StatusMessage": text})
        self._modified = time
        if secondary == "Downloading" and self._training_started is None:
            self._training_started = time

    # -- warm pool ------------------------------------------------------------------------------------------------

    @property
    def keep_alive(self) -> int:
        """Seconds its instances are kept after it."""
        return int(self.request["ResourceConfig"].get("KeepAlivePeriodInSeconds") or 0)

    @property
    def starts_warm(self) -> bool:
        """Whether it has taken over the instances of another job."""
        return self.pool != self.name

    @property
    def pool_key(self) -> tuple[object, ...]:
        """What has to be the same for another job to take over the instances."""
        resources, network = self.request["ResourceConfig"], self.request.get("VpcConfig", {})
        return (
            self.request["RoleArn"],
            *(resources.get(key) for key in ("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId")),
            tuple(sorted(network.get("SecurityGroupIds", []))),
            tuple(sorted(network.get("Subnets", []))),
            bool(self.request.get("EnableInterContainerTrafficEncryption")),
            self.isolated,
        )

    @property
    def pool_status(self) -> str | None:
        """Status of its warm pool; None where it never asked for one."""
        with self._lock:
            if self._reused_by:
                return "Reused"
            if self.active:
                return "InUse" if self.keep_alive else None
            until = self._kept_until()
            if until is None:
                return None
            return "Available" if self.warm_pool_allowed and now() < until else "Terminated"

    def _kept_until(self) -> datetime | None:
        if self._pool_until is not None:
            return self._pool_until
        return self.ended + timedelta(seconds=self.keep_alive) if self.ended and self.keep_alive else None

    def keep(self, seconds: int) -> None:
        """Change how long the instances are kept; 0 releases them now."""
        with self._lock:
            self.request["ResourceConfig"] = {**self.request["ResourceConfig"], "KeepAlivePeriodInSeconds": seconds}
            if self.ended:
                self._pool_until = self.ended + timedelta(seconds=seconds) if seconds else now()
            self._modified = now()

    def hand_over(self, job: TrainingJob) -> None:
        """Give the kept instances to another job."""
        with self._lock:
            self._pool_until = now()
            self._reused_by = job.name
            job.pool = self.pool

    def _pool(self) -> dict[str, Any] | None:
        status = self.pool_status
        if status is None:
            return None
        pool: dict[str, Any] = {"Status": status}
        until = self._kept_until()
        if status in ("Reused", "Terminated") and until and self.ended:
            kept = until - self.ended if self.warm_pool_allowed else timedelta()
            pool["ResourceRetainedBillableTimeInSeconds"] = max(0, round(kept.total_seconds()))
        if self._reused_by:
            pool["ReusedByJob"] = self._reused_by
        return pool

    # -- what the API says ----------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """The answer of ``DescribeTrainingJob``: every field of the request, and where it got to."""
        with self._lock:
            answer = {key: value for key, value in self.request.items() if key != "Tags"}
            answer.setdefault("EnableNetworkIsolation", False)
            answer.setdefault("EnableInterContainerTrafficEncryption", False)
            answer.setdefault("EnableManagedSpotTraining", False)
            answer |= {
                "TrainingJobArn": self.arn,
                "TrainingJobStatus": self.status,
                "SecondaryStatus": self.secondary,
                "SecondaryStatusTransitions": [dict(step) for step in self._transitions],
                "CreationTime": self.created,
                "LastModifiedTime": self._modified,
                "ProfilingStatus": "Disabled",
            }
            if self.has_model:
                answer["ModelArtifacts"] = {"S3ModelArtifacts": self.model_uri}
            if self._training_started:
                answer["TrainingStartTime"] = self._training_started
            if self.ended:
                answer["TrainingEndTime"] = self.ended
            if self.ended and self._training_started:
                seconds = max(1, round((self.ended - self._training_started).total_seconds()))
                answer |= {"TrainingTimeInSeconds": seconds, "BillableTimeInSeconds": seconds}
            optional = {
                "TuningJobArn": self.tuning_job_arn,
                "FailureReason": self._reason,
                "FinalMetricDataList": self._metrics,
                "WarmPoolStatus": self._pool(),
            }
            return answer | {key: value for key, value in optional.items() if value}

    def summary(self) -> dict[str, Any]:
        """Its line in ``ListTrainingJobs``."""
        with self._lock:
            line: dict[str, Any] = {
                "TrainingJobName": self.name,
                "TrainingJobArn": self.arn,
                "CreationTime": self.created,
                "LastModifiedTime": self._modified,
                "TrainingJobStatus": self.status,
                "SecondaryStatus": self.secondary,
            }
            optional = {"TrainingEndTime": self.ended, "WarmPoolStatus": self._pool()}
            return line | {key: value for key, value in optional.items() if value}
