"""One tuning job: what was asked, its trials, which are training jobs like all others, and what the API says of it."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from sagefit_cloud import clients
from sagefit_cloud.jobs import TrainingJob
from sagefit_cloud.records import JobRecord, now
from sagefit_cloud.tuning_search import Tuned, trials

_LOG = logging.getLogger(__name__)
_TICK = 0.1
_ALL_FAILED = "All training jobs failed. Please take a look at the training jobs failures to get more details."
_OBJECTIVE = "_tuning_objective_metric"
_NOT_OF_A_TRIAL = {"StaticHyperParameters", "TuningObjective", "HyperParameterRanges", "DefinitionName"}


class Trial:
    """A training job of a tuning job, and the hyperparameters that were searched for it."""

    def __init__(self, job: TrainingJob, tuned: Tuned) -> None:
        self.job = job
        self.tuned = tuned

    def objective(self, metric: str) -> float | None:
        """The last value of the objective; None before the end, without one, and of a training job that failed."""
        found = self.job.describe()
        if found["TrainingJobStatus"] not in ("Completed", "Stopped"):
            return None
        return next((m["Value"] for m in found.get("FinalMetricDataList", []) if m["MetricName"] == metric), None)


class TuningJob(JobRecord):
    """A tuning job. Its thread starts trials, API calls read it."""

    def __init__(
        self, request: Mapping[str, Any], *, account: str, region: str, partition: str, jobs: Mapping[str, TrainingJob]
    ) -> None:
        name = str(request["HyperParameterTuningJobName"])
        where = {"account": account, "region": region, "partition": partition}
        super().__init__(request, name, f"hyper-parameter-tuning-job/{name.lower()}", **where)
        self.thread = threading.Thread(target=self._run, name=f"tune-{self.name}", daemon=True)
        self._ended: datetime | None = None
        self._reason: str | None = None
        self._jobs = jobs
        self._trials: list[Trial] = []
        self._stop = threading.Event()
        self._closing = threading.Event()

    # -- its way --------------------------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Start no more trials, and stop those that run."""
        with self._lock:
            if self.active:
                self.status, self._modified = "Stopping", now()
                self._stop.set()

    def kill(self) -> None:
        """The cloud ends, and its trials with it."""
        self._closing.set()

    def _run(self) -> None:
        try:
            self._search()
        except ClientError as error:  # a trial that SageMaker does not start ends the search
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            self._finish("Failed", f"{code}: {message}")
        except Exception:
            _LOG.exception("tuning job %s", self.name)
            self._finish("Failed", "InternalServerError: We encountered an internal error. Please try again.")

    def _search(self) -> None:
        config = self.request["HyperParameterTuningJobConfig"]
        limits, wanted = config["ResourceLimits"], trials(config)
        most = limits.get("MaxNumberOfTrainingJobs")
        deadline = time.monotonic() + limits.get("MaxRuntimeInSeconds", float("inf"))
        left = True
        while left or self._running():
            in_time = time.monotonic() < deadline
            if self._closing.is_set():
                return
            if self._stop.is_set() or not in_time:
                left = False
                for trial in self._running():
                    trial.job.request_stop()
            elif left and len(self._running()) < limits["MaxParallelTrainingJobs"]:
                tuned = None if len(self._trials) == most else next(wanted, None)
                left = tuned is not None
                if tuned is not None:
                    self._start(tuned)
                continue
            time.sleep(_TICK)
        if self._stop.is_set():
            self._finish("Stopped")
        elif all(trial.job.status == "Failed" for trial in self._trials):
            self._finish("Failed", _ALL_FAILED)
        else:
            self._finish("Completed")

    def _running(self) -> list[Trial]:
        return [trial for trial in self._trials if trial.job.active]

    def _start(self, tuned: Tuned) -> None:
        definition = self.request["TrainingJobDefinition"]
        name = f"{self.name}-{len(self._trials) + 1:03d}-{secrets.token_hex(4)}"
        given = definition.get("StaticHyperParameters", {}) | tuned | {_OBJECTIVE: self._metric}
        request = {key: value for key, value in definition.items() if key not in _NOT_OF_A_TRIAL}
        request |= {"TrainingJobName": name, "HyperParameters": given, "Tags": self.tags}
        while not (self._stop.is_set() or self._closing.is_set()):
            try:
                clients.internal("sagemaker", self.region).create_training_job(**request)
            except ClientError as error:
                if error.response["Error"]["Code"] != "ThrottlingException":
                    raise
                time.sleep(_TICK)
                continue
            job = self._jobs[name]
            job.tuning_job_arn = self.arn
            self._trials.append(Trial(job, tuned))
            self._modified = now()
            return

    def _finish(self, status: str, reason: str | None = None) -> None:
        for trial in self._running():
            trial.job.request_stop()
        with self._lock:
            self._reason, self._ended = reason, now()
            self.status, self._modified = status, self._ended

    # -- what the API says ----------------------------------------------------------------------------------------

    @property
    def _objective(self) -> dict[str, str]:
        own: dict[str, str] = self.request["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]
        return own

    @property
    def _metric(self) -> str:
        return self._objective["MetricName"]

    def trials(self) -> list[dict[str, Any]]:
        """Its training jobs as ListTrainingJobsForHyperParameterTuningJob tells of them."""
        return [self._line(trial) for trial in list(self._trials)]

    def _line(self, trial: Trial) -> dict[str, Any]:
        found, value = trial.job.describe(), trial.objective(self._metric)
        waits = trial.job.active
        line = {
            "TrainingJobName": trial.job.name,
            "TrainingJobArn": trial.job.arn,
            "TunedHyperParameters": trial.tuned,
            "ObjectiveStatus": "Pending" if waits else "Failed" if value is None else "Succeeded",
        }
        same = ("CreationTime", "TrainingStartTime", "TrainingEndTime", "TrainingJobStatus", "FailureReason")
        line |= {key: found[key] for key in same if key in found}
        if value is not None:
            line["FinalHyperParameterTuningJobObjectiveMetric"] = {**self._objective, "Value": value}
        return line

    def describe(self) -> dict[str, Any]:
        """The answer of DescribeHyperParameterTuningJob."""
        lines = self.trials()
        valued = [line for line in lines if "FinalHyperParameterTuningJobObjectiveMetric" in line]
        sign = 1 if self._objective["Type"] == "Maximize" else -1
        best = max(
            valued, key=lambda line: sign * line["FinalHyperParameterTuningJobObjectiveMetric"]["Value"], default=None
        )
        optional = {
            "HyperParameterTuningEndTime": self._ended,
            "FailureReason": self._reason,
            "BestTrainingJob": best,
        }
        return {
            **{key: value for key, value in self.request.items() if key != "Tags"},
            **self.summary(lines),
            "ConsumedResources": {"RuntimeInSeconds": round(((self._ended or now()) - self.created).total_seconds())},
            **{key: value for key, value in optional.items() if value is not None},
        }

    def summary(self, lines: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        """Its line in ListHyperParameterTuningJobs."""
        lines = self.trials() if lines is None else lines
        config = self.request["HyperParameterTuningJobConfig"]
        states = [line["TrainingJobStatus"] for line in lines]
        objectives = [line["ObjectiveStatus"] for line in lines]
        return {
            "HyperParameterTuningJobName": self.name,
            "HyperParameterTuningJobArn": self.arn,
            "HyperParameterTuningJobStatus": self.status,
            "CreationTime": self.created,
            "LastModifiedTime": self._modified,
            "TrainingJobStatusCounters": {
                "Completed": states.count("Completed"),
                "InProgress": states.count("InProgress") + states.count("Stopping"),
                "RetryableError": 0,
                "NonRetryableError": states.count("Failed"),
                "Stopped": states.count("Stopped"),
            },
            "ObjectiveStatusCounters": {key: objectives.count(key) for key in ("Succeeded", "Pending", "Failed")},
            "Strategy": config["Strategy"],
            "ResourceLimits": config["ResourceLimits"],
        }
