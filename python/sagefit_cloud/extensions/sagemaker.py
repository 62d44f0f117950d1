"""SageMaker: training jobs that start, run and end, in place of moto's, which are born completed."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.s3.models import s3_backends
from moto.sagemaker import urls
from moto.sagemaker.exceptions import SagemakerClientError

from sagefit.cloud.faults import Faults
from sagefit.iam.evaluate import Call
from sagefit_cloud import authorization, quotas
from sagefit_cloud.executor import Executor
from sagefit_cloud.extensions import events
from sagefit_cloud.extensions.processing import ProcessingRequests
from sagefit_cloud.extensions.requests import Requests, api_error, in_time, invalid, page
from sagefit_cloud.extensions.tuning import TuningJobs
from sagefit_cloud.jobs import TrainingJob
from sagefit_cloud.storage import S3Uri

_SORT_KEYS = {"Name": "TrainingJobName", "CreationTime": "CreationTime", "Status": "TrainingJobStatus"}
_creation = threading.Lock()


class SageMaker(TuningJobs, ProcessingRequests):
    """moto's SageMaker with training jobs of our own. They live in moto's dictionary, so its tagging works on them."""

    @property
    def _jobs(self) -> dict[str, TrainingJob]:
        jobs: dict[str, Any] = self.sagemaker_backend.training_jobs
        return jobs

    def _job(self, request: dict[str, Any]) -> TrainingJob:
        job = self._jobs.get(request["TrainingJobName"])
        if job is None:
            raise invalid("Requested resource not found.")
        return job

    def create_training_job(self) -> ActionResult:
        """Check what the request asks for as the API does, then start the job."""
        request = self.request()
        job = TrainingJob(
            request,
            account=self.current_account,
            region=self.region,
            partition=self.partition,
            on_change=partial(_tell, self.current_account),
        )
        with _creation:  # name, quota and warm pool are looked up and taken in one step
            if job.name in self._jobs:
                raise SagemakerClientError(
                    "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a training job with this "
                    f"name already exists ({self._jobs[job.name].arn})",
                )
            job.fault = self.fault_of(job.name, job.instance_type)
            lost_answer = job.fault if job.fault and job.fault.created else None
            if lost_answer:
                job.fault = self.fault_of(job.name, job.instance_type)
            self.check_role(request["RoleArn"])
            self._check_buckets(request)
            self._check_quota(job)
            self._take_warm_pool(job)
            self._jobs[job.name] = job
        self.executor.start(job)
        if lost_answer:
            raise api_error(lost_answer)
        return ActionResult({"TrainingJobArn": job.arn})

    def describe_training_job(self) -> ActionResult:
        """Everything about one job."""
        return ActionResult(self._job(self.request()).describe())

    def stop_training_job(self) -> ActionResult:
        """Ask a job to stop; it has 120 seconds to save its work."""
        job = self._job(self.request())
        if not job.active:
            raise invalid(f"The request was rejected because the training job is in status {job.status}.")
        job.request_stop()
        return EmptyResult()

    def update_training_job(self) -> ActionResult:
        """Change how long a job's instances are kept warm; 0 releases them."""
        request = self.request()
        job = self._job(request)
        seconds = request.get("ResourceConfig", {}).get("KeepAlivePeriodInSeconds")
        if seconds is not None:
            if not job.active and job.pool_status != "Available":
                raise invalid(f"The warm pool of training job {job.name} is {job.pool_status or 'not there'}.")
            if seconds and job.spot:
                raise invalid("KeepAlivePeriodInSeconds is not supported when EnableManagedSpotTraining is set to true")
            job.keep(seconds)
        for key in ("ProfilerConfig", "ProfilerRuleConfigurations", "RemoteDebugConfig"):
            if key in request:
                job.request[key] = request[key]
        return ActionResult({"TrainingJobArn": job.arn})

    def delete_training_job(self) -> ActionResult:
        """Forget a job that has ended."""
        job = self._job(self.request())
        if job.active:
            raise invalid(f"The request was rejected because the training job is in status {job.status}.")
        if job.pool_status == "Available":
            raise invalid("The request was rejected because the training job has an available warm pool.")
        del self._jobs[job.name]
        return EmptyResult()

    def list_training_jobs(self) -> ActionResult:
        """Jobs by name, status and time, sorted and in pages."""
        request = self.request()
        summaries = [job.summary() for job in list(self._jobs.values())]
        found = [line for line in summaries if in_time(line, request)]
        key = _SORT_KEYS[request.get("SortBy", "CreationTime")]
        found.sort(key=lambda line: line[key], reverse=request.get("SortOrder") == "Descending")
        return ActionResult(page(found, request, "TrainingJobSummaries", partial(_is_asked_for, request)))

    def _check_buckets(self, request: dict[str, Any]) -> None:
        buckets = s3_backends[self.current_account][self.partition].buckets
        role = request["RoleArn"]
        output = request["OutputDataConfig"]["S3OutputPath"]
        if S3Uri.parse(output).bucket not in buckets:
            raise invalid(f"Access denied to OutputDataConfig S3 bucket: {output}: there is no such bucket.")
        written = Call(
            "s3:PutObject", (S3Uri.parse(output) / request["TrainingJobName"] / "output").arn(self.partition)
        )
        if why := authorization.denial(role, [written]):
            raise invalid(f"Access denied to OutputDataConfig S3 bucket: {output}: {why}.")
        for channel in request.get("InputDataConfig", []):
            source = channel["DataSource"].get("S3DataSource")
            if source is None:
                continue
            bucket, prefix = S3Uri.parse(source["S3Uri"])
            keys = buckets[bucket].keys if bucket in buckets else {}
            listed = Call("s3:ListBucket", S3Uri(bucket, "").arn(self.partition), {"s3:prefix": prefix})
            if authorization.denial(role, [listed]) or not any(key.startswith(prefix) for key in list(keys)):
                raise invalid(
                    f'No S3 objects found under S3 URL "{source["S3Uri"]}" given in input data source. Please ensure '
                    f"that the bucket exists in the selected region ({self.region}), that objects exist under that S3 "
                    f'prefix, and that the role "{request["RoleArn"]}" has "s3:ListBucket" permissions on bucket '
                    f'"{bucket}".'
                )

    def _check_quota(self, job: TrainingJob) -> None:
        usage = quotas.SPOT_USAGE if job.spot else quotas.USAGE
        running = [other for other in list(self._jobs.values()) if other.active and other.spot == job.spot]
        for ml_type in {group.instance_type for group in job.groups}:
            allowed = quotas.limit(self.region, ml_type, usage)
            used, wanted = sum(other.instances_of(ml_type) for other in running), job.instances_of(ml_type)
            if used + wanted > allowed:
                raise SagemakerClientError(
                    "ResourceLimitExceeded",
                    f"The account-level service limit '{ml_type} {usage}' is {allowed:g} Instances, with current "
                    f"utilization of {used} Instances and a request delta of {wanted} Instances. Please "
                    "use AWS Service Quotas to request an increase for this quota. If AWS Service Quotas is not "
                    "available, contact AWS support to request an increase for this quota.",
                )
        pool = quotas.limit(self.region, job.instance_type, quotas.WARM_POOL_USAGE)
        job.warm_pool_allowed = job.instance_count <= pool

    def _take_warm_pool(self, job: TrainingJob) -> None:
        for other in list(self._jobs.values()):
            if other.pool_status == "Available" and other.pool_key == job.pool_key and not job.spot:
                other.hand_over(job)
                return


def _tell(account: str, job: TrainingJob) -> None:
    events.send(
        account=account,
        region=job.region,
        source="aws.sagemaker",
        kind="SageMaker Training Job State Change",
        resource=job.arn,
        detail=job.describe() | {"Tags": {tag["Key"]: tag["Value"] for tag in job.tags}},
    )


def _is_asked_for(request: dict[str, Any], line: dict[str, Any]) -> bool:
    status, pool = line["TrainingJobStatus"], line.get("WarmPoolStatus", {}).get("Status")
    return (
        request.get("NameContains", "") in line["TrainingJobName"]
        and request.get("StatusEquals", status) == status
        and request.get("WarmPoolStatusEquals", pool) == pool
    )


def install(executor: Executor, faults: Faults) -> None:
    """Put this class in place of moto's and give it the parts it works with."""
    Requests.executor, Requests.faults = executor, faults
    urls.url_paths = {"{0}/$": SageMaker.dispatch}
