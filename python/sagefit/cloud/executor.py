"""Runs training jobs: one thread for each, which walks the statuses and leaves data, logs and metrics behind."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from sagefit.catalog import instances
from sagefit.cloud import clients, images, storage, telemetry
from sagefit.cloud.aws_environment import aws_variables
from sagefit.cloud.container import ML, Container
from sagefit.cloud.jobs import TrainingJob, now
from sagefit.cloud.record import INSTANCE_VARIABLE
from sagefit.cloud.storage import Checkpoints, S3Uri

_LOG = logging.getLogger(__name__)
_TICK = 0.05
_FLUSH_SECONDS = 0.5
_CHECKPOINT_SECONDS = 1.0
_UTILISATION_SECONDS = 2.0
_GIB = 1024**3
_DISK_FULL = "AlgorithmError: [Errno 28] No space left on device: more than the volume's {} bytes, exit code: 137"
_DISK_SHARE = 4  # a host's volume may take this part of the machine's free memory
#: Seconds between SIGTERM and SIGKILL. AWS gives 120.
GRACE_VARIABLE = "SAGEFIT_STOP_GRACE_SECONDS"
_GRACE_SECONDS = 120.0
# AWS's own words for a host that ran out of memory.
_OUT_OF_MEMORY = (
    "ClientError: Please use an instance type with more memory, "
    "or reduce the size of job data processed on an instance."
)
_INTERNAL = "InternalServerError: We encountered an internal error. Please try again."
_CHECKPOINTS = f"{ML}/checkpoints"


class _JobFailedError(Exception):
    """The job has failed; the text is its ``FailureReason``."""


class _EndedError(Exception):
    """The job ended early; carries its status and secondary status."""

    def __init__(self, status: str, secondary: str, *, keep_model: bool = False) -> None:
        super().__init__(status, secondary)
        self.status, self.secondary, self.keep_model = status, secondary, keep_model


class _InterruptedError(Exception):
    """Spot capacity was taken away."""


class Executor:
    """Starts jobs and ends them with the cloud."""

    def __init__(self, folder: Path, *, memory_scale: float, instance: str, own_mounts: bool = False) -> None:
        self.folder = folder
        self.own_mounts = own_mounts
        self.memory_scale = memory_scale
        self.instance = instance
        self.grace_seconds = float(os.environ.get(GRACE_VARIABLE, _GRACE_SECONDS))
        self._runs: list[_Run] = []
        self._started = 0
        self._lock = threading.Lock()

    def start(self, job: TrainingJob) -> None:
        """Run a job in its own thread."""
        run = _Run(self, job)
        with self._lock:
            self._started += 1
            self._runs = [other for other in self._runs if other.thread.is_alive()] + [run]
            run.thread.start()

    def counts(self) -> dict[str, int]:
        """How many jobs were started, and how many of them run."""
        with self._lock:
            return {
                "training_jobs": self._started,
                "running_jobs": sum(run.thread.is_alive() for run in self._runs),
            }

    def close(self) -> None:
        """Kill everything that runs."""
        with self._lock:
            runs = list(self._runs)
        for run in runs:
            run.kill()
        for run in runs:
            run.thread.join(5)


class _Run:
    """One job's way from Starting to its end, in a thread of its own."""

    def __init__(self, executor: Executor, job: TrainingJob) -> None:
        self.thread = threading.Thread(target=self._run, name=f"run-{job.name}", daemon=True)
        self._executor = executor
        self._job = job
        self._began = time.monotonic()
        self._trained = 0.0  # seconds of earlier launches, before an interruption
        self._folder = executor.folder / f"{job.name}-{job.created:%H%M%S%f}"
        self._containers: list[Container] = []
        self._logs: list[telemetry.JobLog] = []
        self._metrics: telemetry.JobMetrics | None = None
        self._checkpoints: Checkpoints | None = None
        self._closing = threading.Event()
        self._interrupt_after = job.fault.interrupt_after_seconds if job.fault else None

    def kill(self) -> None:
        """Kill its processes; the cloud ends."""
        self._closing.set()
        for container in self._containers:
            container.kill()

    def _run(self) -> None:
        job = self._job
        try:
            if not self._apply_fault():
                self._walk()
            job.finish("Completed", "Completed", metrics=self._final(), has_model=True)
        except _EndedError as end:
            job.finish(end.status, end.secondary, metrics=self._final(), has_model=end.keep_model)
        except _JobFailedError as failure:
            job.finish("Failed", "Failed", reason=str(failure), metrics=self._final())
        except Exception:
            if not self._closing.is_set():
                _LOG.exception("training job %s", job.name)
                job.finish("Failed", "Failed", reason=_INTERNAL, metrics=self._final())
        finally:
            for container in self._containers:
                container.close()
            with contextlib.suppress(Exception):
                self._flush()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _final(self) -> list[dict[str, Any]]:
        return self._metrics.final() if self._metrics else []

    def _walk(self) -> None:
        definitions = self._job.request["AlgorithmSpecification"].get("MetricDefinitions", [])
        self._metrics = telemetry.JobMetrics(self._job.region, self._job.name, definitions)
        self._job.advance("Pending")
        launch = 0
        while True:
            try:
                self._launch(self._folder / str(launch))
                return
            except _InterruptedError:
                for container in self._containers:
                    container.close()
                self._job.advance("Interrupted")
                launch += 1
                self._job.advance("Starting")

    def _apply_fault(self) -> bool:
        """Whether a fault stands in for training; one that is a bad end raises it."""
        fault = self._job.fault
        if fault and fault.status == "Failed":
            raise _JobFailedError(fault.failure_reason)
        if fault and fault.stopped:
            raise _EndedError("Stopped", fault.stopped)
        return bool(fault and fault.status == "Completed")

    def _launch(self, folder: Path) -> None:
        self._check_stop()
        command = self._command()
        framework = self._framework()
        self._job.advance("Downloading")
        self._prepare(folder)
        packages = self._environment(framework, folder)
        self._check_stop()
        self._job.advance("Training")
        port = _free_port()
        for container in self._containers:
            container.start(command, self._variables(container, packages, port))
        reason = self._train()
        self._save(model=reason is None)
        if reason is not None:
            raise _JobFailedError(reason)

    def _command(self) -> list[str]:
        algorithm = self._job.request["AlgorithmSpecification"]
        entrypoint = algorithm.get("ContainerEntrypoint")
        if not entrypoint:
            raise _JobFailedError(
                "ClientError: the embedded cloud runs jobs with a ContainerEntrypoint only: it has no images, so "
                "neither their own entrypoints nor built-in algorithms"
            )
        return [*entrypoint, *algorithm.get("ContainerArguments", [])]

    def _framework(self) -> str:
        algorithm = self._job.request["AlgorithmSpecification"]
        if "TrainingImage" not in algorithm:
            raise _JobFailedError(f"ClientError: the embedded cloud has no algorithm {algorithm['AlgorithmName']}")
        try:
            return images.framework_of(algorithm["TrainingImage"])
        except images.ImageError as error:
            raise _JobFailedError(f"ClientError: {error}") from error

    # -- before ---------------------------------------------------------------------------------------------------

    def _prepare(self, folder: Path) -> None:
        job = self._job
        hosts = [f"algo-{index + 1}" for index in range(job.instance_count)]
        started = int(now().timestamp())
        self._containers, self._logs = [], []
        for name in hosts:
            log = telemetry.JobLog(job.region, f"{job.name}/{name}-{started}")
            self._logs.append(log)
            self._containers.append(
                Container(
                    name, folder / name, self._memory_limit(), self._listener(log), self._disk_limit(), self._own_disk()
                )
            )
        try:
            for index, container in enumerate(self._containers):
                container.prepare(self._config(container.name, hosts))
                for channel in job.request.get("InputDataConfig", []):
                    self._check_mode(channel)
                    target = container.ml / "input" / "data" / channel["ChannelName"]
                    storage.download_channel(job.region, channel, target, index, len(hosts))
            self._restore_checkpoints()
        except storage.DataError as error:
            raise _JobFailedError(f"ClientError: {error}") from error
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise _JobFailedError(f"ClientError: Data download failed:not enough disk space: {error}") from error

    def _listener(self, log: telemetry.JobLog) -> Any:
        metrics = self._metrics

        def listen(line: str) -> None:
            log.add(line)
            if metrics:
                metrics.scan(line)

        return listen

    def _memory_limit(self) -> int:
        instance = instances().get(self._job.instance_type)
        if instance is None:
            raise _JobFailedError(f"ClientError: the embedded cloud does not know {self._job.instance_type}")
        return int(instance.memory_gib * self._executor.memory_scale * _GIB)

    def _disk_limit(self) -> int:
        """Bytes of a host's volume."""
        resources = self._job.request["ResourceConfig"]
        return int(resources.get("VolumeSizeInGB", 0) * self._executor.memory_scale * 1000**3)

    def _own_disk(self) -> bool:
        """Whether a host gets a file system of its own, which lies in memory."""
        room = psutil.virtual_memory().available / _DISK_SHARE
        return self._executor.own_mounts and 0 < self._disk_limit() <= room

    def _check_mode(self, channel: dict[str, Any]) -> None:
        mode = channel.get("InputMode") or self._job.request["AlgorithmSpecification"]["TrainingInputMode"]
        if mode == "Pipe":
            raise storage.DataError(
                f"channel {channel['ChannelName']}: the embedded cloud has no Pipe mode, use File or FastFile"
            )

    def _config(self, host: str, hosts: list[str]) -> dict[str, Any]:
        job = self._job
        mode = job.request["AlgorithmSpecification"]["TrainingInputMode"]
        channels = {
            channel["ChannelName"]: {
                "TrainingInputMode": channel.get("InputMode") or mode,
                "S3DistributionType": channel["DataSource"]
                .get("S3DataSource", {})
                .get("S3DataDistributionType", "FullyReplicated"),
                "RecordWrapperType": channel.get("RecordWrapperType", "None"),
                "ContentType": channel.get("ContentType", ""),
            }
            for channel in job.request.get("InputDataConfig", [])
        }
        group = "homogeneousCluster"
        resources = {
            "current_host": host,
            "current_instance_type": job.instance_type,
            "current_group_name": group,
            "hosts": hosts,
            "instance_groups": [{"instance_group_name": group, "instance_type": job.instance_type, "hosts": hosts}],
            "network_interface_name": "lo",
        }
        config: dict[str, Any] = {
            "hyperparameters": job.request.get("HyperParameters", {}),
            "inputdataconfig": channels,
            "resourceconfig": resources,
        }
        if "CheckpointConfig" in job.request:
            config["checkpointconfig"] = job.request["CheckpointConfig"]
        return config

    def _restore_checkpoints(self) -> None:
        asked = self._job.request.get("CheckpointConfig")
        if not asked:
            return
        local = asked.get("LocalPath") or _CHECKPOINTS
        target = S3Uri.parse(asked["S3Uri"])
        for container in self._containers:
            here = container.localise(local)
            if here == local:
                raise storage.DataError(f"CheckpointConfig.LocalPath: the embedded cloud has {ML} only, not {local}")
            checkpoints = Checkpoints(self._job.region, target, Path(here))
            checkpoints.restore()
            if container is self._containers[0]:
                self._checkpoints = checkpoints

    def _environment(self, framework: str, folder: Path) -> Path:
        requirements = self._containers[0].ml / "input" / "data" / "code" / "requirements.txt"
        wanted = requirements.read_bytes() if requirements.is_file() and not self._job.isolated else None
        try:
            base = images.environment(framework)
        except images.ImageError as error:
            raise _JobFailedError(f"ClientError: image: {error}") from error
        if wanted:
            try:
                base = images.environment(framework, wanted)
            except images.ImageError as error:  # the job's own installer tries again, and says so in its own words
                self._logs[0].add(f"requirements.txt: {error}")
        return images.layer(base, folder / "env")

    def _variables(self, container: Container, packages: Path, port: int) -> dict[str, str]:
        job = self._job
        variables = {
            "PATH": f"{packages / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(container.folder / "home"),
            "TMPDIR": container.temporary,
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "AWS_REGION": job.region,
        }
        if not job.isolated:
            variables |= aws_variables(clients.endpoint(), job.region)
        return (
            variables
            | dict(job.request.get("Environment", {}))
            | {
                "TRAINING_JOB_NAME": job.name,
                "TRAINING_JOB_ARN": job.arn,
                "SAGEFIT_ML_ROOT": str(container.ml),
                "SAGEFIT_MEMORY_LIMIT_BYTES": str(container.memory_limit),
                # Hosts are processes here, and their names are in no name service.
                "SAGEFIT_MASTER_ADDRESS": "127.0.0.1",
                "SAGEFIT_MASTER_PORT": str(port),
                GRACE_VARIABLE: f"{self._executor.grace_seconds:g}",
                INSTANCE_VARIABLE: self._executor.instance,
            }
        )

    # -- during ---------------------------------------------------------------------------------------------------

    def _train(self) -> str | None:
        """Watch until all hosts ended; returns why the job failed, or None."""
        began = time.monotonic()
        due = dict.fromkeys(("flush", "checkpoints", "utilisation"), began)
        while True:
            codes = [container.poll() for container in self._containers]
            failed = [item for item in zip(self._containers, codes, strict=True) if item[1] not in (None, 0)]
            if failed:
                self._kill_all()
                self._trained += time.monotonic() - began
                return _reason(*failed[0])
            if None not in codes:
                self._trained += time.monotonic() - began
                return None
            time.sleep(_TICK)
            self._tick(due, time.monotonic())
            self._check_limits(began)

    def _tick(self, due: dict[str, float], at: float) -> None:
        if at >= due["flush"]:
            self._flush()
            due["flush"] = at + _FLUSH_SECONDS
        if at >= due["checkpoints"] and self._checkpoints:
            self._checkpoints.sync()
            due["checkpoints"] = at + _CHECKPOINT_SECONDS
        if at >= due["utilisation"]:
            self._check_disks()
            self._publish_utilisation()
            due["utilisation"] = at + _UTILISATION_SECONDS

    def _check_disks(self) -> None:
        for container in self._containers:
            if container.disk_is_full:
                self._kill_all()
                self._save(model=False)
                raise _JobFailedError(_DISK_FULL.format(container.disk_limit))

    def _check_limits(self, began: float) -> None:
        job, at = self._job, time.monotonic()
        if self._closing.is_set():
            raise _EndedError("Stopped", "Stopped")
        if job.stop_requested.is_set():
            self._stop("Stopped")
        if self._trained + at - began > job.max_runtime:
            self._stop("MaxRuntimeExceeded")
        if job.max_wait is not None and at - self._began > job.max_wait:
            self._stop("MaxWaitTimeExceeded")
        if self._interrupt_after is not None and at - began > self._interrupt_after:
            self._interrupt_after = None
            self._trained += at - began
            self._kill_all()
            self._flush()
            if self._checkpoints:
                self._checkpoints.sync()
            raise _InterruptedError

    def _check_stop(self) -> None:
        if self._job.stop_requested.is_set() or self._closing.is_set():
            raise _EndedError("Stopped", "Stopped")

    def _stop(self, secondary: str) -> None:
        """SIGTERM, time to save work, SIGKILL; what there is of a model is kept."""
        self._job.advance("Stopping")
        for container in self._containers:
            container.terminate()
        deadline = time.monotonic() + self._executor.grace_seconds
        while time.monotonic() < deadline and any(container.poll() is None for container in self._containers):
            if self._closing.wait(_TICK):
                break
        self._kill_all()
        self._save(model=True)
        raise _EndedError("Stopped", secondary, keep_model=True)

    def _kill_all(self) -> None:
        for container in self._containers:
            container.kill()

    def _publish_utilisation(self) -> None:
        data: list[dict[str, Any]] = []
        for container in self._containers:
            shares = container.shares()
            if shares:
                shares["DiskUtilization"] = telemetry.disk_percent(str(container.folder))
                data += telemetry.utilisation(f"{self._job.name}/{container.name}", shares)
        telemetry.publish(self._job.region, data)

    def _flush(self) -> None:
        for log in self._logs:
            log.flush()
        if self._metrics:
            self._metrics.flush()

    # -- after ----------------------------------------------------------------------------------------------------

    def _save(self, *, model: bool) -> None:
        """Upload what the job made. A failed job leaves its output and checkpoints, no model."""
        job = self._job
        if self._closing.is_set():
            return
        job.advance("Uploading")
        self._flush()
        if self._checkpoints:
            self._checkpoints.sync()
        target = S3Uri.parse(job.output_uri)
        roots = [container.ml for container in self._containers]
        parts = [("output", [root / "output" / "data" for root in roots])]
        if model:
            parts.append(("model", [root / "model" for root in roots]))
        for name, folders in parts:
            packed = f"{name}.tar.gz" if job.compressed else None
            if name == "output" and not any(storage.files_in(folder) for folder in folders):
                continue
            where = target if packed else target / ("data" if name == "output" else name)
            storage.upload_folders(job.region, folders, where, pack_as=packed, scratch=self._folder)


def _free_port() -> int:
    """A port for the hosts of one job to meet at: several jobs share this machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _reason(container: Container, code: int | None) -> str:
    """What ``FailureReason`` says about a host that ended with an exit code other than 0."""
    if container.failure:
        return f"AlgorithmError: {container.failure}, exit code: {code}"
    if container.memory_kills:
        return _OUT_OF_MEMORY
    return f"AlgorithmError: , exit code: {code}"
