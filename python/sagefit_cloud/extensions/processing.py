"""SageMaker: processing jobs that start, run and end, in place of moto's, which are born completed."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.sagemaker.exceptions import SagemakerClientError

from sagefit_cloud.extensions import events
from sagefit_cloud.extensions.requests import Requests, api_error, in_time, page
from sagefit_cloud.processing import ProcessingRun
from sagefit_cloud.processing_jobs import ProcessingJob

_SORT_KEYS = {"Name": "ProcessingJobName", "CreationTime": "CreationTime", "Status": "ProcessingJobStatus"}
_creation = threading.Lock()


class ProcessingRequests(Requests):
    """Requests about processing jobs. They live in moto's dictionary, so its tagging works on them."""

    @property
    def _processing_jobs(self) -> dict[str, ProcessingJob]:
        jobs: dict[str, Any] = self.sagemaker_backend.processing_jobs
        return jobs

    def _processing_job(self, request: dict[str, Any]) -> ProcessingJob:
        job = self._processing_jobs.get(request["ProcessingJobName"])
        if job is None:
            raise SagemakerClientError("ResourceNotFound", "Requested resource not found.")
        return job

    def create_processing_job(self) -> ActionResult:
        """Check what the request asks for as the API does, then start the job."""
        request = self.request()
        job = ProcessingJob(
            request,
            account=self.current_account,
            region=self.region,
            partition=self.partition,
            on_change=partial(_tell, self.current_account),
        )
        with _creation:
            if job.name in self._processing_jobs:
                raise SagemakerClientError(
                    "ResourceInUse",
                    "Job name must be unique within an AWS account and region, and a processing job with this name "
                    f"already exists ({self._processing_jobs[job.name].arn})",
                )
            job.fault = self.fault_of(job.name, job.cluster["InstanceType"])
            lost_answer = job.fault if job.fault and job.fault.created else None
            if lost_answer:
                job.fault = self.fault_of(job.name, job.cluster["InstanceType"])
            self.check_role(request["RoleArn"])
            self._processing_jobs[job.name] = job
        self.executor.take(ProcessingRun(self.executor.machine, job))
        if lost_answer:
            raise api_error(lost_answer)
        return ActionResult({"ProcessingJobArn": job.arn})

    def describe_processing_job(self) -> ActionResult:
        """Everything about one job."""
        return ActionResult(self._processing_job(self.request()).describe())

    def stop_processing_job(self) -> ActionResult:
        """Ask a job to stop."""
        self._processing_job(self.request()).request_stop()
        return EmptyResult()

    def list_processing_jobs(self) -> ActionResult:
        """Jobs by name, status and time, sorted and in pages."""
        request = self.request()
        summaries = [job.summary() for job in list(self._processing_jobs.values())]
        found = [line for line in summaries if in_time(line, request)]
        key = _SORT_KEYS[request.get("SortBy", "CreationTime")]
        found.sort(key=lambda line: line[key], reverse=request.get("SortOrder") == "Descending")
        return ActionResult(page(found, request, "ProcessingJobSummaries", partial(_is_asked_for, request)))


def _is_asked_for(request: dict[str, Any], line: dict[str, Any]) -> bool:
    status = line["ProcessingJobStatus"]
    return (
        request.get("NameContains", "") in line["ProcessingJobName"] and request.get("StatusEquals", status) == status
    )


def _tell(account: str, job: ProcessingJob) -> None:
    events.send(
        account=account,
        region=job.region,
        source="aws.sagemaker",
        kind="SageMaker Processing Job State Change",
        resource=job.arn,
        detail=job.describe(),
    )
