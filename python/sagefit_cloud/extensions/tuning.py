"""SageMaker: tuning jobs that try hyperparameters in training jobs, in place of moto's, which are born completed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.sagemaker.exceptions import SagemakerClientError

from sagefit_cloud.extensions.requests import Requests, in_time, invalid, page
from sagefit_cloud.tuning import TuningJob

_NAME, _STATUS = "HyperParameterTuningJobName", "HyperParameterTuningJobStatus"
_SORT_KEYS = {"Name": _NAME, "CreationTime": "CreationTime", "Status": _STATUS}
_TRIAL_KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Name": lambda line: line["TrainingJobName"],
    "CreationTime": lambda line: line["CreationTime"],
    "Status": lambda line: line["TrainingJobStatus"],
    "FinalObjectiveMetricValue": lambda line: line[_VALUE]["Value"],
}
_VALUE = "FinalHyperParameterTuningJobObjectiveMetric"


class TuningJobs(Requests):
    """Tuning jobs. They live in moto's dictionary, so its tagging works on them."""

    @property
    def _tuning_jobs(self) -> dict[str, TuningJob]:
        jobs: dict[str, Any] = self.sagemaker_backend.hyper_parameter_tuning_jobs
        return jobs

    def _tuning_job(self, request: dict[str, Any]) -> TuningJob:
        job = self._tuning_jobs.get(request[_NAME])
        if job is None:
            raise SagemakerClientError("ResourceNotFound", f"Hyperparameter tuning job {request[_NAME]} was not found.")
        return job

    def create_hyper_parameter_tuning_job(self) -> ActionResult:
        """Check what the request asks for as the API does, then start to try."""
        request = self.request()
        self.check_role(request["TrainingJobDefinition"]["RoleArn"])
        training_jobs: Any = self.sagemaker_backend.training_jobs
        job = TuningJob(
            request,
            account=self.current_account,
            region=self.region,
            partition=self.partition,
            jobs=training_jobs,
        )
        if self._tuning_jobs.setdefault(job.name, job) is not job:
            raise SagemakerClientError(
                "ResourceInUse",
                "Hyperparameter tuning job names must be unique within an AWS account and region, and a hyperparameter "
                f"tuning job with this name already exists ({self._tuning_jobs[job.name].arn})",
            )
        self.executor.take(job)
        return ActionResult({"HyperParameterTuningJobArn": job.arn})

    def describe_hyper_parameter_tuning_job(self) -> ActionResult:
        """Everything about one tuning job."""
        return ActionResult(self._tuning_job(self.request()).describe())

    def stop_hyper_parameter_tuning_job(self) -> ActionResult:
        """Ask a tuning job to stop, and with it its training jobs."""
        job = self._tuning_job(self.request())
        if not job.active:
            raise invalid(f"The request was rejected because the hyperparameter tuning job is in status {job.status}.")
        job.request_stop()
        return EmptyResult()

    def list_hyper_parameter_tuning_jobs(self) -> ActionResult:
        """Tuning jobs by name, status and time, sorted and in pages."""
        request = self.request()
        summaries = [job.summary() for job in list(self._tuning_jobs.values())]
        found = [line for line in summaries if in_time(line, request)]
        key = _SORT_KEYS[request.get("SortBy", "Name")]
        found.sort(key=lambda line: line[key], reverse=request.get("SortOrder") == "Descending")
        return ActionResult(page(found, request, "HyperParameterTuningJobSummaries", partial(_is_asked_for, request)))

    def list_training_jobs_for_hyper_parameter_tuning_job(self) -> ActionResult:
        """The training jobs of one tuning job."""
        request = self.request()
        by = request.get("SortBy", "Name")
        trials = self._tuning_job(request).trials()
        found = [line for line in trials if by != "FinalObjectiveMetricValue" or _VALUE in line]
        found.sort(key=_TRIAL_KEYS[by], reverse=request.get("SortOrder") == "Descending")
        status = request.get("StatusEquals")
        return ActionResult(
            page(found, request, "TrainingJobSummaries", lambda line: status in (None, line["TrainingJobStatus"]))
        )


def _is_asked_for(request: dict[str, Any], line: dict[str, Any]) -> bool:
    return (
        request.get("NameContains", "") in line[_NAME] and request.get("StatusEquals", line[_STATUS]) == line[_STATUS]
    )
