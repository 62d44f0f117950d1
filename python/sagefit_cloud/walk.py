"""A training job's way from Starting to its end, in a thread of its own."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable
from typing import Any

from sagefit_cloud import algorithms, ends, pulling, telemetry, volume_keys
from sagefit_cloud.ends import EndedError, JobFailedError, SpotInterruptedError, stands_in
from sagefit_cloud.hosts import FLUSH_SECONDS, TICK, UTILISATION_SECONDS
from sagefit_cloud.jobs import TrainingJob
from sagefit_cloud.launch import Launch
from sagefit_cloud.machine import Machine
from sagefit_cloud.storage import DataError

_LOG = logging.getLogger(__name__)
_CHECKPOINT_SECONDS = 1.0


class TrainingWalk:
    """Takes one training job through its statuses and leaves data, logs and metrics behind."""

    def __init__(self, machine: Machine, job: TrainingJob) -> None:
        self.thread = threading.Thread(target=self._run, name=f"run-{job.name}", daemon=True)
        self._machine = machine
        self._job = job
        self._began = time.monotonic()
        self._trained = 0.0  # seconds of earlier launches, before an interruption
        self._folder = machine.folder / f"{job.name}-{job.created:%H%M%S%f}"
        self._launch: Launch | None = None
        self._metrics: telemetry.JobMetrics | None = None
        self._closing = threading.Event()
        self._interrupt_after = job.fault.interrupt_after_seconds if job.fault else None
        self._interrupt_line = job.fault.interrupt_after_line if job.fault else None

    def kill(self) -> None:
        """Kill its processes; the cloud ends."""
        self._closing.set()
        if self._launch:
            self._launch.hosts.kill()

    def _run(self) -> None:
        job = self._job
        try:
            if job.fault and job.fault.stopped in ("MaxRuntimeExceeded", "Stopped"):
                job.advance("Downloading")
            if not stands_in(self._job.fault):
                self._walk()
            job.finish("Completed", "Completed", metrics=self._final(), has_model=True)
        except EndedError as end:
            job.finish(end.status, end.secondary, metrics=self._final(), has_model=end.keep_model)
        except JobFailedError as failure:
            job.finish("Failed", "Failed", reason=str(failure), metrics=self._final())
        except DataError as error:
            job.finish("Failed", "Failed", reason=f"ClientError: {error}", metrics=self._final())
        except Exception:
            if not self._closing.is_set():
                _LOG.exception("training job %s", job.name)
                job.finish("Failed", "Failed", reason=ends.INTERNAL, metrics=self._final())
        finally:
            if self._launch:
                self._launch.hosts.close()
                with contextlib.suppress(Exception):
                    self._flush(self._launch)
            shutil.rmtree(self._folder, ignore_errors=True)
            if job.pool_status not in ("Available", "Reused"):
                shutil.rmtree(self._machine.pool(job.pool), ignore_errors=True)

    def _final(self) -> list[dict[str, Any]]:
        """The last value of each metric; of the memory the highest."""
        if not self._metrics or not self._launch:
            return []
        used = max((container.memory_peak for container in self._launch.hosts), default=0)
        for name, value in algorithms.peak(self._job, used).items():
            self._metrics.add(name, value)
        return self._metrics.final()

    def _walk(self) -> None:
        job = self._job
        self._metrics = metrics = telemetry.JobMetrics(
            job.region, job.role, job.name, algorithms.metric_definitions(job)
        )
        job.advance("Pending")
        number = 0
        while True:
            if number or not job.starts_warm:
                self._wait_for_instances()
                volume_keys.check(job)
            self._check_stop()
            launch = self._launch = Launch(self._machine, job, self._folder / str(number))
            try:
                self._train_once(launch, metrics)
                return
            except SpotInterruptedError:
                launch.hosts.close()
                job.advance("Interrupted")
                number += 1
                job.advance("Starting")

    def _train_once(self, launch: Launch, metrics: telemetry.JobMetrics) -> None:
        self._job.advance("Downloading")
        pulling.check(self._job.role, self._job.request["AlgorithmSpecification"].get("TrainingImage", ""))
        launch.prepare(self._listener(metrics))
        packages = launch.install()
        self._check_stop()
        self._job.advance("Training")
        launch.start(packages)
        reason = self._watch(launch)
        if reason is None:
            self._save(launch, model=True)
            return
        with contextlib.suppress(DataError):  # why the script failed is what counts
            self._save(launch, model=False)
        raise JobFailedError(reason)

    def _listener(self, metrics: telemetry.JobMetrics) -> Callable[[str], None]:
        def listen(line: str) -> None:
            metrics.scan(line)
            if self._interrupt_line and self._interrupt_line in line:
                self._interrupt_after, self._interrupt_line = 0.0, None

        return listen

    def _watch(self, launch: Launch) -> str | None:
        """Watch until all hosts ended; returns why the job failed, or None."""
        began = time.monotonic()
        due = dict.fromkeys(("flush", "checkpoints", "utilisation"), began)
        while True:
            ended = launch.hosts.ended()
            if isinstance(ended, tuple):
                launch.hosts.kill()
            if ended:
                self._check_data(launch)
                self._trained += time.monotonic() - began
                return (
                    ends.reason(*ended, built_in=algorithms.is_built_in(self._job))
                    if isinstance(ended, tuple)
                    else None
                )
            time.sleep(TICK)
            self._tick(launch, due, time.monotonic())
            self._check_limits(launch, began)

    def _tick(self, launch: Launch, due: dict[str, float], at: float) -> None:
        if at >= due["flush"]:
            self._flush(launch)
            due["flush"] = at + FLUSH_SECONDS
        if at >= due["checkpoints"]:
            launch.sync_checkpoints()
            due["checkpoints"] = at + _CHECKPOINT_SECONDS
        if at >= due["utilisation"]:
            self._check_data(launch)
            launch.hosts.publish_utilisation()
            due["utilisation"] = at + UTILISATION_SECONDS

    def _check_data(self, launch: Launch) -> None:
        """End a job whose volume is full or whose stream is broken, with what it has saved."""
        try:
            launch.hosts.check_disks()
            launch.hosts.check_streams()
        except JobFailedError:
            self._save(launch, model=False)
            raise

    def _check_limits(self, launch: Launch, began: float) -> None:
        job, at = self._job, time.monotonic()
        if self._closing.is_set():
            raise EndedError("Stopped", "Stopped")
        if job.stop_requested.is_set():
            self._stop(launch, "Stopped")
        if self._trained + at - began > job.max_runtime:
            self._stop(launch, "MaxRuntimeExceeded")
        if job.max_wait is not None and at - self._began > job.max_wait:
            self._stop(launch, "MaxWaitTimeExceeded")
        if self._interrupt_after is not None and at - began > self._interrupt_after:
            self._interrupt_after = None
            self._trained += at - began
            launch.hosts.kill()
            self._flush(launch)
            launch.sync_checkpoints()
            raise SpotInterruptedError

    def _wait_for_instances(self) -> None:
        deadline = time.monotonic() + self._machine.start_seconds
        while time.monotonic() < deadline and not self._job.stop_requested.is_set():
            self._closing.wait(TICK)

    def _check_stop(self) -> None:
        if self._job.stop_requested.is_set() or self._closing.is_set():
            raise EndedError("Stopped", "Stopped")

    def _stop(self, launch: Launch, secondary: str) -> None:
        """Give the job time to save its work; what there is of a model is kept."""
        self._job.advance("Stopping")
        grace = self._machine.grace_of(self._job.request.get("Environment", {}))
        launch.hosts.stop(grace, self._closing.wait)
        self._save(launch, model=True)
        raise EndedError("Stopped", secondary, keep_model=True)

    def _flush(self, launch: Launch) -> None:
        launch.hosts.flush()
        if self._metrics:
            self._metrics.flush()

    def _save(self, launch: Launch, *, model: bool) -> None:
        if self._closing.is_set():
            return
        self._job.advance("Uploading")
        self._flush(launch)
        launch.save(model=model)
