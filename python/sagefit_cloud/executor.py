"""Runs jobs: one thread for each, which takes it to its end."""

from __future__ import annotations

import threading
from typing import Protocol

from sagefit_cloud.jobs import TrainingJob
from sagefit_cloud.machine import Machine
from sagefit_cloud.walk import TrainingWalk


class Run(Protocol):
    """A job on its way."""

    thread: threading.Thread

    def kill(self) -> None:
        """Kill its processes; the cloud ends."""


class Executor:
    """Starts jobs and ends them with the cloud."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._runs: list[Run] = []
        self._started = 0
        self._lock = threading.Lock()

    def start(self, job: TrainingJob) -> None:
        """Run a training job in its own thread."""
        with self._lock:
            self._started += 1
        self.take(TrainingWalk(self.machine, job))

    def take(self, run: Run) -> None:
        """Start a run's thread, and end it with the cloud."""
        with self._lock:
            self._runs = [other for other in self._runs if other.thread.is_alive()] + [run]
            run.thread.start()

    def counts(self) -> dict[str, int]:
        """How many training jobs were started, and how many jobs of all kinds run."""
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
