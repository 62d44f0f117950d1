"""One launch of a training job: its hosts made, filled and started, and what they made saved."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sagefit_cloud import algorithms, channels, storage
from sagefit_cloud.container import ML, Container
from sagefit_cloud.ends import JobFailedError
from sagefit_cloud.hosts import Hosts
from sagefit_cloud.jobs import TrainingJob
from sagefit_cloud.machine import Machine, free_port
from sagefit_cloud.records import now
from sagefit_cloud.storage import Checkpoints, S3Uri

_CHECKPOINTS = f"{ML}/checkpoints"
_CACHE = f"{ML}/sagemaker/warmpoolcache"


class Launch:
    """The hosts of a training job from their making to their end; an interrupted job has several launches."""

    def __init__(self, machine: Machine, job: TrainingJob, folder: Path) -> None:
        self._machine, self._job, self._folder = machine, job, folder
        self.hosts = Hosts(job.region, job.role, job.name)
        self._checkpoints: list[Checkpoints] = []  # of each host: their folders share one prefix
        self._command, self._framework = algorithms.command(job), algorithms.framework(job)

    def prepare(self, scan: Callable[[str], None]) -> None:
        """Make the hosts and bring them their data; ``scan`` gets every line they will print.

        Raises DataError where it does not come.
        """
        job, started = self._job, int(now().timestamp())
        for name, group in job.hosts:
            self.hosts.containers.append(
                self._machine.host(
                    name,
                    self._folder / name,
                    instance_type=group.instance_type,
                    volume_gb=job.request["ResourceConfig"].get("VolumeSizeInGB", 0),
                    on_line=self.hosts.log(f"{job.name}/{name}-{started}", scan),
                    measure=algorithms.is_built_in(job),
                )
            )
        try:
            for container in self.hosts:
                container.prepare(_config(job, container.name))
                self._keep_cache(container)
                self.hosts.streams += channels.fill(job, container)
            with storage.moving(storage.DOWNLOAD):
                self._restore_checkpoints()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise JobFailedError(f"ClientError: Data download failed:not enough disk space: {error}") from error

    def install(self) -> Path:
        """The packages the hosts run with."""
        first = self.hosts.containers[0]
        requirements = None if self._job.isolated else first.ml / "input" / "data" / "code" / "requirements.txt"
        kept = self._machine.pool(self._job.pool) if self._keeps else None
        return self._machine.packages(
            self._framework, (kept or self._folder) / "env", requirements, self.hosts.say, kept=kept is not None
        )

    def start(self, packages: Path) -> None:
        """Run the command on every host."""
        job, port = self._job, free_port()
        asked = {**job.request.get("Environment", {}), "TRAINING_JOB_NAME": job.name, "TRAINING_JOB_ARN": job.arn}
        if self._keeps:
            asked["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"] = _CACHE
        for container in self.hosts:
            variables = self._machine.variables(
                container, packages, asked, region=job.region, role=job.credentials, port=port
            )
            container.start(self._command, variables)
        for stream in self.hosts.streams:
            stream.start()

    def sync_checkpoints(self) -> None:
        """Save what changed among the checkpoints. Raises DataError where S3 does not take it."""
        with storage.moving(storage.UPLOAD):
            for checkpoints in self._checkpoints:
                checkpoints.sync()

    def save(self, *, model: bool) -> None:
        """Upload what the job made. A failed job leaves its output and checkpoints, no model.

        Raises DataError where S3 does not take it.
        """
        job = self._job
        self.sync_checkpoints()
        target = S3Uri.parse(job.output_uri)
        roots = [container.ml for container in self.hosts]
        parts = [("output", [root / "output" / "data" for root in roots])]
        if model:
            parts.append(("model", [root / "model" for root in roots]))
        for name, folders in parts:
            packed = f"{name}.tar.gz" if job.compressed else None
            if name == "output" and not any(storage.files_in(folder) for folder in folders):
                continue
            where = target if packed else target / ("data" if name == "output" else name)
            with storage.moving(storage.UPLOAD):
                storage.upload_folders(
                    job.s3, folders, where, key=job.output_key, pack_as=packed, scratch=self._folder.parent
                )

    @property
    def _keeps(self) -> bool:
        """Whether its instances come from a warm pool or go to one."""
        return self._job.starts_warm or self._job.keep_alive > 0

    def _keep_cache(self, container: Container) -> None:
        """Give a host the folder that outlives its job in a warm pool."""
        if self._keeps:
            cache = self._machine.pool(self._job.pool) / container.name
            cache.mkdir(parents=True, exist_ok=True)
            here = Path(container.localise(_CACHE))
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(cache, target_is_directory=True)

    def _restore_checkpoints(self) -> None:
        asked = self._job.request.get("CheckpointConfig")
        if not asked:
            return
        local = asked.get("LocalPath") or _CHECKPOINTS
        target = S3Uri.parse(asked["S3Uri"])
        for container in self.hosts:
            here = container.localise(local)
            if here == local:
                raise storage.DataError(f"CheckpointConfig.LocalPath: the embedded cloud has {ML} only, not {local}")
            checkpoints = Checkpoints(self._job.s3, target, Path(here))
            checkpoints.restore()
            self._checkpoints.append(checkpoints)


def _config(job: TrainingJob, host: str) -> dict[str, Any]:
    """The files of ``/opt/ml/input/config`` on one host, by name."""
    group = dict(job.hosts)[host]
    config: dict[str, Any] = {
        "hyperparameters": job.request.get("HyperParameters", {}),
        "inputdataconfig": channels.configuration(job, host),
        "resourceconfig": {
            "current_host": host,
            "current_instance_type": group.instance_type,
            "current_group_name": group.name,
            "hosts": [name for name, _ in job.hosts],
            "instance_groups": [
                {
                    "instance_group_name": each.name,
                    "instance_type": each.instance_type,
                    "hosts": [name for name, its in job.hosts if its.name == each.name],
                }
                for each in job.groups
            ],
            "network_interface_name": "lo",
        },
    }
    if "CheckpointConfig" in job.request:
        config["checkpointconfig"] = job.request["CheckpointConfig"]
    return config
