"""SageMaker: training jobs that start, run and end, in place of moto's, which are born completed."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timezone
from functools import partial
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, EmptyResult
from moto.iam.models import iam_backends
from moto.s3.models import s3_backends
from moto.sagemaker import urls
from moto.sagemaker.exceptions import SagemakerClientError
from moto.sagemaker.responses import SageMakerResponse

from sagefit.cloud import quotas, validation
from sagefit.cloud.executor import Executor
from sagefit.cloud.extensions import events
from sagefit.cloud.faults import Faults, Outcome
from sagefit.cloud.jobs import ENDED, TrainingJob

_SORT_KEYS = {"Name": "TrainingJobName", "CreationTime": "CreationTime", "Status": "TrainingJobStatus"}
_SERVER_ERRORS = {"InternalFailure": 500, "InternalServerError": 500, "ServiceUnavailable": 503}
_creation = threading.Lock()
_parts: dict[str, Any] = {}


def _invalid(message: str) -> SagemakerClientError:
    return SagemakerClientError("ValidationException", message)


def _api_error(outcome: Outcome) -> Exception:
    name = str(outcome.api_error)
    error = JsonRESTError(name, outcome.message or f"{name} from the faults file")
    error.code = _SERVER_ERRORS.get(name, 400)
    return error


class SageMaker(SageMakerResponse):
    """moto's SageMaker with training jobs of our own. They live in moto's dictionary, so its tagging works on them."""

    @property
    def _jobs(self) -> dict[str, TrainingJob]:
        jobs: dict[str, Any] = self.sagemaker_backend.training_jobs
        return jobs

    def _request(self) -> dict[str, Any]:
        request: dict[str, Any] = json.loads(self.body or "{}")
        problems = validation.problems_of(str(self._get_action()), request)
        if problems:
            count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected"
            raise _invalid(f"{count}: {'; '.join(problems)}")
        return request

    def _job(self, request: dict[str, Any]) -> TrainingJob:
        job = self._jobs.get(request["TrainingJobName"])
        if job is None:
            raise _invalid("Requested resource not found.")
        return job

    def create_training_job(self) -> ActionResult:
        """Check the request as the API does, then start the job."""
        request = self._request()
        for conflict in validation.conflicts_of(request):
            raise _invalid(conflict)
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
            job.fault = self._fault(job)
            lost_answer = job.fault if job.fault and job.fault.created else None
            if lost_answer:
                job.fault = self._fault(job)
            self._check_role(request["RoleArn"])
            self._check_buckets(request)
            self._check_quota(job)
            self._take_warm_pool(job)
            self._jobs[job.name] = job
        executor: Executor = _parts["executor"]
        executor.start(job)
        if lost_answer:
            raise _api_error(lost_answer)
        return ActionResult({"TrainingJobArn": job.arn})

    def describe_training_job(self) -> ActionResult:
        """Everything about one job."""
        return ActionResult(self._job(self._request()).describe())

    def stop_training_job(self) -> ActionResult:
        """Ask a job to stop; it has 120 seconds to save its work."""
        job = self._job(self._request())
        if not job.active:
            raise _invalid(f"The request was rejected because the training job is in status {job.status}.")
        job.request_stop()
        return EmptyResult()

    def update_training_job(self) -> ActionResult:
        """Change how long a job's instances are kept warm; 0 releases them."""
        request = self._request()
        job = self._job(request)
        seconds = request.get("ResourceConfig", {}).get("KeepAlivePeriodInSeconds")
        if seconds is not None:
            if not job.active and job.pool_status != "Available":
                raise _invalid(f"The warm pool of training job {job.name} is {job.pool_status or 'not there'}.")
            if seconds and job.spot:
                raise _invalid(
                    "KeepAlivePeriodInSeconds is not supported when EnableManagedSpotTraining is set to true"
                )
            job.keep(seconds)
        for key in ("ProfilerConfig", "ProfilerRuleConfigurations", "RemoteDebugConfig"):
            if key in request:
                job.request[key] = request[key]
        return ActionResult({"TrainingJobArn": job.arn})

    def delete_training_job(self) -> ActionResult:
        """Forget a job that has ended."""
        job = self._job(self._request())
        if job.status not in ENDED:
            raise _invalid(f"The request was rejected because the training job is in status {job.status}.")
        if job.pool_status == "Available":
            raise _invalid("The request was rejected because the training job has an available warm pool.")
        del self._jobs[job.name]
        return EmptyResult()

    def list_training_jobs(self) -> ActionResult:
        """Jobs by name, status and time, sorted and in pages."""
        request = self._request()
        jobs = [job for job in list(self._jobs.values()) if _listed(job, request)]
        found = [job.summary() for job in jobs]
        key = _SORT_KEYS[request.get("SortBy", "CreationTime")]
        found.sort(key=lambda line: line[key], reverse=request.get("SortOrder") == "Descending")
        start, size = self._position(request), int(request.get("MaxResults") or 10)
        page: dict[str, Any] = {"TrainingJobSummaries": found[start : start + size]}
        if start + size < len(found):
            page["NextToken"] = str(start + size)
        return ActionResult(page)

    @staticmethod
    def _position(request: dict[str, Any]) -> int:
        token = str(request.get("NextToken") or "0")
        if not token.isdigit():
            raise _invalid("Invalid pagination token.")
        return int(token)

    @staticmethod
    def _fault(job: TrainingJob) -> Outcome | None:
        faults: Faults = _parts["faults"]
        outcome = faults.next(job.name, job.instance_type)
        if outcome and outcome.throttle:
            raise SagemakerClientError("ThrottlingException", "Rate exceeded")
        if outcome and outcome.api_error and not outcome.created:
            raise _api_error(outcome)
        return outcome

    def _check_role(self, arn: str) -> None:
        roles = iam_backends[self.current_account][self.partition].roles.values()
        trust = next((str(role.assume_role_policy_document) for role in roles if role.arn == arn), "")
        if "sagemaker.amazonaws.com" not in trust:
            raise _invalid(
                f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
                "'sagemaker.amazonaws.com' to assume the role."
            )

    def _check_buckets(self, request: dict[str, Any]) -> None:
        buckets = s3_backends[self.current_account][self.partition].buckets
        output = request["OutputDataConfig"]["S3OutputPath"]
        if _split(output)[0] not in buckets:
            raise _invalid(f"Access denied to OutputDataConfig S3 bucket: {output}: there is no such bucket.")
        for channel in request.get("InputDataConfig", []):
            source = channel["DataSource"].get("S3DataSource")
            if source is None:
                continue
            bucket, prefix = _split(source["S3Uri"])
            keys = buckets[bucket].keys if bucket in buckets else {}
            if not any(key.startswith(prefix) for key in list(keys)):
                raise _invalid(
                    f'No S3 objects found under S3 URL "{source["S3Uri"]}" given in input data source. Please ensure '
                    f"that the bucket exists in the selected region ({self.region}), that objects exist under that S3 "
                    f'prefix, and that the role "{request["RoleArn"]}" has "s3:ListBucket" permissions on bucket '
                    f'"{bucket}".'
                )

    def _check_quota(self, job: TrainingJob) -> None:
        usage = quotas.SPOT_USAGE if job.spot else quotas.USAGE
        allowed = quotas.limit(self.region, job.instance_type, usage)
        same = [
            other.instance_count
            for other in list(self._jobs.values())
            if other.active and other.instance_type == job.instance_type and other.spot == job.spot
        ]
        if sum(same) + job.instance_count > allowed:
            raise SagemakerClientError(
                "ResourceLimitExceeded",
                f"The account-level service limit '{job.instance_type} {usage}' is {allowed:g} Instances, with current "
                f"utilization of {sum(same)} Instances and a request delta of {job.instance_count} Instances. Please "
                "use AWS Service Quotas to request an increase for this quota.",
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
        detail=job.describe(),
    )


def _split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.split("://", 1)[-1].partition("/")
    return bucket, key


def _listed(job: TrainingJob, request: dict[str, Any]) -> bool:
    line = job.summary()
    times = [("CreationTime", line["CreationTime"]), ("LastModifiedTime", line["LastModifiedTime"])]
    in_time = all(
        _time(request.get(f"{name}After"), default=0) <= value.timestamp()
        and value.timestamp() <= _time(request.get(f"{name}Before"), default=float("inf"))
        for name, value in times
    )
    return (
        in_time
        and request.get("NameContains", "") in job.name
        and request.get("StatusEquals", job.status) == job.status
        and request.get("WarmPoolStatusEquals", job.pool_status) == job.pool_status
    )


def _time(value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, str):
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    return float(value)


def install(executor: Executor, faults: Faults) -> None:
    """Put this class in place of moto's and give it the parts it works with."""
    _parts.update(executor=executor, faults=faults)
    urls.url_paths = {"{0}/$": SageMaker.dispatch}
