"""Runs processing jobs: data in, the container's command, data out."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import threading
import time
from pathlib import Path
from typing import Any

from sagefit.cloud import images
from sagefit_cloud import ends, pulling, storage, volume_keys
from sagefit_cloud.container import ML, Container
from sagefit_cloud.ends import EndedError, JobFailedError
from sagefit_cloud.hosts import FLUSH_SECONDS, TICK, Hosts
from sagefit_cloud.machine import Machine, framework_of, free_port
from sagefit_cloud.processing_jobs import ProcessingJob
from sagefit_cloud.records import now
from sagefit_cloud.storage import Checkpoints, S3Uri

_LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/ProcessingJobs"


class ProcessingRun:
    """One processing job on its way, in a thread of its own."""

    def __init__(self, machine: Machine, job: ProcessingJob) -> None:
        self.thread = threading.Thread(target=self._run, name=f"run-{job.name}", daemon=True)
        self._machine, self._job = machine, job
        self._folder = machine.folder / f"{job.name}-{job.created:%H%M%S%f}"
        self._hosts = Hosts(job.region, job.role, job.name, LOG_GROUP)
        self._followed: list[Checkpoints] = []
        self._closing = threading.Event()

    def kill(self) -> None:
        """Kill its processes; the cloud ends."""
        self._closing.set()
        self._hosts.kill()

    def _run(self) -> None:
        job = self._job
        try:
            if not ends.stands_in(self._job.fault):
                self._process()
            job.finish("Completed", message=self._message())
        except EndedError as end:
            job.finish(end.status, message=self._message())
        except JobFailedError as failure:
            job.finish("Failed", reason=str(failure), message=self._message())
        except storage.DataError as error:
            job.finish("Failed", reason=f"ClientError: {error}", message=self._message())
        except Exception:
            if not self._closing.is_set():
                _LOG.exception("processing job %s", job.name)
                job.finish("Failed", reason=ends.INTERNAL)
        finally:
            self._hosts.close()
            with contextlib.suppress(Exception):
                self._hosts.flush()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _process(self) -> None:
        application = self._job.request["AppSpecification"]
        command = [*application.get("ContainerEntrypoint", []), *application.get("ContainerArguments", [])]
        if not application.get("ContainerEntrypoint"):
            raise JobFailedError(
                "ClientError: the embedded cloud runs processing jobs with a ContainerEntrypoint only: it has no "
                "images, and so no entrypoints of their own"
            )
        volume_keys.check(self._job)
        pulling.check(self._job.role, application["ImageUri"])
        framework = framework_of(application["ImageUri"])
        self._prepare()
        packages = self._machine.packages(framework, self._folder / "env", None, self._hosts.say)
        images.put_programs(framework, packages)
        self._check_stop()
        port = free_port()
        for container in self._hosts:
            asked = {str(key): str(value) for key, value in self._job.request.get("Environment", {}).items()}
            asked |= {"PROCESSING_JOB_NAME": self._job.name, "PROCESSING_JOB_ARN": self._job.arn}
            container.start(
                command,
                self._machine.variables(
                    container, packages, asked, region=self._job.region, role=self._job.credentials, port=port
                ),
            )
        self._job.start()
        self._watch()
        self._upload()

    def _prepare(self) -> None:
        job, cluster, started = self._job, self._job.cluster, int(now().timestamp())
        names = [f"algo-{number}" for number in range(1, cluster["InstanceCount"] + 1)]
        for name in names:
            self._hosts.containers.append(
                self._machine.host(
                    name,
                    self._folder / name,
                    instance_type=cluster["InstanceType"],
                    volume_gb=cluster["VolumeSizeInGB"],
                    on_line=self._hosts.log(f"{job.name}/{name}-{started}", lambda _line: None),
                )
            )
        for index, container in enumerate(self._hosts):
            container.prepare({})
            self._configure(container, names)
            for given in job.request.get("ProcessingInputs", []):
                target = _here(container, given["S3Input"]["LocalPath"])
                storage.download_channel(job.s3, _channel(given), target, index, len(names))
            for output in job.outputs:
                folder = _here(container, output["LocalPath"])
                folder.mkdir(parents=True, exist_ok=True)
                if output["S3UploadMode"] == "Continuous":
                    where = S3Uri.parse(output["S3Uri"])
                    self._followed.append(Checkpoints(job.s3, where, folder, deletes=False, key=job.output_key))

    def _configure(self, container: Container, names: list[str]) -> None:
        """The files of ``/opt/ml/config``."""
        folder = container.ml / "config"
        folder.mkdir(parents=True, exist_ok=True)
        described = {key: value for key, value in self._job.describe().items() if not key.endswith("Time")}
        for name, content in {
            "processingjobconfig": described,
            "resourceconfig": {"current_host": container.name, "hosts": names, "network_interface_name": "lo"},
        }.items():
            (folder / f"{name}.json").write_text(json.dumps(content))

    def _watch(self) -> None:
        """Watch until all hosts ended; raises where that is a bad end."""
        began = due = time.monotonic()
        while True:
            ended = self._hosts.ended()
            if ended:
                self._hosts.kill()
                self._follow()
                if isinstance(ended, tuple):
                    raise JobFailedError(ends.reason(*ended, built_in=False))
                return
            time.sleep(TICK)
            if time.monotonic() >= due:
                self._follow()
                self._hosts.check_disks()
                due = time.monotonic() + FLUSH_SECONDS
            if self._job.stop_requested.is_set() or time.monotonic() - began > self._job.max_runtime:
                grace = self._machine.grace_of(self._job.request.get("Environment", {}))
                self._hosts.stop(grace, self._closing.wait)
                raise EndedError("Stopped", "Stopped")
            self._check_stop()

    def _follow(self) -> None:
        self._hosts.flush()
        with storage.moving(storage.UPLOAD):
            for output in self._followed:
                output.sync()

    def _upload(self) -> None:
        """Bring the outputs to S3. Hosts that wrote files of one name: the first host's stays."""
        for output in self._job.outputs:
            if output["S3UploadMode"] == "EndOfJob":
                folders = [_here(container, output["LocalPath"]) for container in self._hosts]
                target = S3Uri.parse(output["S3Uri"].rstrip("/"))
                with storage.moving(storage.UPLOAD):
                    storage.upload_folders(
                        self._job.s3, folders, target, key=self._job.output_key, pack_as=None, scratch=self._folder
                    )

    def _check_stop(self) -> None:
        if self._job.stop_requested.is_set() or self._closing.is_set():
            raise EndedError("Stopped", "Stopped")

    def _message(self) -> str:
        """What the containers left in ``/opt/ml/output/message``; the first host that left something counts."""
        return next(filter(None, (container.said("message") for container in self._hosts)), "")


def _here(container: Container, path: str) -> Path:
    here = container.localise(path)
    if here == path:
        raise storage.DataError(f"LocalPath {path}: the embedded cloud has {ML} only")
    return Path(here)


def _channel(given: dict[str, Any]) -> dict[str, Any]:
    """An input of a processing job in the form of a channel."""
    return {"ChannelName": given["InputName"], "DataSource": {"S3DataSource": given["S3Input"]}}
