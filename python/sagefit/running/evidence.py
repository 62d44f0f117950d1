"""What ended a training job, with more than its FailureReason: each host's log, and how full memory and disk were."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from botocore.exceptions import ClientError

from sagefit.catalog import instances
from sagefit.catalog.hardware import groups_of
from sagefit.failures import ROOMY, Diagnosis, decided, diagnose
from sagefit.running import reports
from sagefit.running.clients import cloudwatch
from sagefit.running.logs import HOSTS, tails

NAMESPACE = "/aws/sagemaker/TrainingJobs"
_METRICS = {"MemoryUtilization": "host_memory", "GPUMemoryUtilization": "gpu_memory", "DiskUtilization": "disk"}
_PERIOD = 3600  # seconds, which CloudWatch has for as long as it keeps a metric


NEVER_STARTED = "MaxPendingTimeExceeded"
"""Stands in for the secondary status of a job whose max_pending ran out, as in modules/training-job/definition.tf."""


def ended_as(job: Mapping[str, Any]) -> str:
    """The secondary status that tells why a training job, as DescribeTrainingJob tells of it, has ended.

    A job that waits for instances for longer than its MaxPendingTimeInSeconds is Stopped and never started (Batch
    guide). No document has the word of its secondary status. A job that a person stops before it started looks the
    same.
    """
    secondary = str(job["SecondaryStatus"])
    waits = (job.get("StoppingCondition") or {}).get("MaxPendingTimeInSeconds")
    if job["TrainingJobStatus"] != "Stopped" or not waits or job.get("TrainingStartTime"):
        return secondary
    found = decided(None, secondary_status=secondary)
    return secondary if found and found.failure_class != "stopped" else NEVER_STARTED


def diagnosis_of(job: Mapping[str, Any], read: Callable[[], list[reports.Report]]) -> Diagnosis:
    """Why a training job, as DescribeTrainingJob tells of it, did not complete; ``read`` gets the reports of its hosts.

    If AWS's own message decides, no call is made. Otherwise there are at most 2 calls for the list of logs and the
    metrics, one call for the log of each of 20 hosts, and those of ``read``. Data that may not be read, or no longer
    exists, is left out.
    """
    reason, secondary = job.get("FailureReason"), ended_as(job)
    found = decided(reason, secondary_status=secondary, hosts=_count(job))
    if found:
        return found
    recorded = read()
    return diagnose(
        reason,
        secondary_status=secondary,
        log=_logs(job["TrainingJobName"], recorded),
        kernel_kills=reports.kernel_kills(recorded),
        utilisation=reports.utilisation(recorded) if recorded else _utilisation(job),
    )


def _logs(training_job: str, recorded: list[reports.Report]) -> dict[str, list[str]]:
    """The end of each host's log; for a host without a log, the conclusion of its launcher."""
    concluded = {
        str(report.get("host")): [f"sagefit: {report['class']}: {report.get('evidence')}"]
        for report in recorded
        if report.get("class")
    }
    try:
        return concluded | tails(training_job)
    except ClientError:
        return concluded


def _utilisation(job: Mapping[str, Any]) -> dict[str, float]:
    """The highest of what CloudWatch has of any host, in percent.

    CloudWatch samples once a minute. So a resource that no sample shows full may still have been full: it is left out.
    CloudWatch adds up the GPUs of a host, so the GPU figure is their mean.
    """
    began, ended = (
        job.get("TrainingStartTime", job["CreationTime"]),
        job.get("TrainingEndTime", job["LastModifiedTime"]),
    )
    queries = [
        {
            "Id": f"{resource}_{host}",
            "MetricStat": {
                "Metric": {
                    "Namespace": NAMESPACE,
                    "MetricName": metric,
                    "Dimensions": [{"Name": "Host", "Value": f"{job['TrainingJobName']}/algo-{host}"}],
                },
                "Period": _PERIOD,
                "Stat": "Maximum",
            },
        }
        for metric, resource in _METRICS.items()
        for host in range(1, _count(job) + 1)
    ]
    try:
        answer = cloudwatch().get_metric_data(
            MetricDataQueries=queries,  # type: ignore[arg-type]
            StartTime=_hour(began, math.floor),
            EndTime=_hour(ended, math.ceil),
        )
    except ClientError:
        return {}
    known = instances().get(job.get("ResourceConfig", {}).get("InstanceType", ""))
    gpus = max(1, known.gpu_count if known else 1)
    highest: dict[str, float] = {}
    for result in answer["MetricDataResults"]:
        resource = result["Id"].rpartition("_")[0]
        value = max(result["Values"], default=0.0) / (gpus if resource == "gpu_memory" else 1)
        highest[resource] = max(value, highest.get(resource, 0.0))
    return {resource: value for resource, value in highest.items() if value >= ROOMY}


def _count(job: Mapping[str, Any]) -> int:
    """Hosts that are looked at."""
    resources = job.get("ResourceConfig", {})
    grouped = sum(each.instance_count for each in groups_of(resources))
    return min(HOSTS, grouped or int(resources.get("InstanceCount") or 1))


def _hour(moment: datetime, whole: Any) -> datetime:
    return datetime.fromtimestamp(whole(moment.timestamp() / _PERIOD) * _PERIOD, timezone.utc)
