"""A training job, read as the attempt that it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sagefit.catalog import Instance, instances
from sagefit.catalog.hardware import Instances, groups_of, hourly_price
from sagefit.failures import Diagnosis, diagnose
from sagefit.running import evidence, reports
from sagefit.running.clients import sagemaker
from sagefit.running.idle import filled_disk, in_words
from sagefit.running.names import attempt_index
from sagefit.running.records import COMPLETED, AttemptRecord

PEAK_METRIC = "sagefit:host_memory_peak_gib"
UNSAVED_METRIC = "sagefit:unsaved_seconds"


def read_training_job(name: str, region: str) -> AttemptRecord:
    """The training job ``name`` as an attempt of its run, with prices of ``region``."""
    job: dict[str, Any] = dict(sagemaker().describe_training_job(TrainingJobName=name))
    resources, output = job.get("ResourceConfig", {}), _output(name, job)
    read = cache(lambda: reports.read(output))
    outcome, diagnosis, routed_by = _ended(job, read)
    seconds = job.get("BillableTimeInSeconds") if outcome else None
    groups = groups_of(resources)
    one = Instances("", resources.get("InstanceType", ""), resources.get("InstanceCount", 1))
    known = hourly_price(groups or [one], region)
    usd = known.usd_per_hour * seconds / 3600 if known and seconds is not None else None
    estimated = bool(known and known.estimated)
    metrics = {m["MetricName"]: float(m["Value"]) for m in job.get("FinalMetricDataList", [])}
    types = [instances().get(each.instance_type) for each in groups or [one]]
    seen = _seen(job, outcome, metrics, types, read, region)
    return AttemptRecord(
        index=attempt_index(name),
        name=job.get("Environment", {}).get("SAGEFIT_ATTEMPT", str(attempt_index(name))),
        instance_type=one.instance_type,
        instance_count=sum(each.instance_count for each in groups) or one.instance_count,
        groups=[str(each) for each in groups],
        start_seconds=_start_seconds(job),
        created=job["CreationTime"],
        ended=job.get("TrainingEndTime"),
        spot=bool(job.get("EnableManagedSpotTraining")),
        training_job=name,
        status=job["SecondaryStatus"],
        outcome=outcome,
        diagnosis=diagnosis,
        host_peak_gib=seen.host_peak,
        billable_seconds=seconds,
        usd=None if estimated else usd,
        estimated_usd=usd if estimated else None,
        metrics={key: value for key, value in metrics.items() if not key.startswith("sagefit:")},
        model=job.get("ModelArtifacts", {}).get("S3ModelArtifacts", "") if outcome == COMPLETED else "",
        host_limit_gib=seen.host_limit if seen.host_peak is not None else None,
        gpu_peak_gib=seen.gpu_peak,
        gpu_limit_gib=seen.gpu_limit if seen.gpu_peak is not None else None,
        hyperparameters=dict(job.get("HyperParameters", {})),
        model_is_empty=outcome == COMPLETED and not seen.made_model,
        lost_seconds=seen.lost_seconds if diagnosis else None,
        growth=reports.growth(read()) if outcome == "host_memory" else "",
        idle=seen.idle,
        filled_disk=seen.filled_disk,
        interruptions=sum(
            step["Status"] in ("Interrupted", "Restarting") for step in job.get("SecondaryStatusTransitions", [])
        ),
        code=_code(job),
        output=output,
        failure_reason=job.get("FailureReason", ""),
        routed_by=routed_by if routed_by != outcome else "",
    )


def _output(name: str, job: dict[str, Any]) -> str:
    return f"{job.get('OutputDataConfig', {}).get('S3OutputPath', '').rstrip('/')}/{name}/output"


def _ended(job: dict[str, Any], read: Callable[[], list[reports.Report]]) -> tuple[str, Diagnosis | None, str]:
    """The outcome, empty while it runs; why it ended; and the class by which the state machine went on."""
    if job["TrainingJobStatus"] == "Completed":
        return COMPLETED, None, ""
    if job["TrainingJobStatus"] not in ("Failed", "Stopped"):
        return "", None, ""
    diagnosis = evidence.diagnosis_of(job, read)
    routed_by = diagnose(job.get("FailureReason"), secondary_status=evidence.ended_as(job)).failure_class
    return diagnosis.failure_class, diagnosis, routed_by


@dataclass(frozen=True)
class _Seen:
    """What the script's use of its instances shows, in GiB and seconds, of the launcher's report or of its metrics."""

    host_peak: float | None = None
    host_limit: float | None = None
    gpu_peak: float | None = None
    gpu_limit: float | None = None
    made_model: bool = True
    lost_seconds: float | None = None
    idle: str = ""
    filled_disk: str = ""


def _seen(
    job: dict[str, Any],
    outcome: str,
    metrics: Mapping[str, float],
    types: Sequence[Instance | None],
    read: Callable[[], list[reports.Report]],
    region: str,
) -> _Seen:
    of_metrics = _Seen(metrics.get(PEAK_METRIC), lost_seconds=metrics.get(UNSAVED_METRIC))
    with_gpus = next((each for each in types if each and each.gpu_count), None)
    # No metric has the GPU peak or what the script left, and on an image with metrics of its own none has anything.
    defined = {metric["Name"] for metric in job["AlgorithmSpecification"].get("MetricDefinitions", [])}
    if not outcome or not (with_gpus or (_code(job) and (outcome == COMPLETED or PEAK_METRIC not in defined))):
        is_full = outcome == "host_memory"
        return replace(of_metrics, host_limit=reports.host_limit_gib(read())) if is_full else of_metrics
    report = read()
    told = reports.lost_seconds(report, kept="CheckpointConfig" in job)
    idle = reports.idle(report)
    return _Seen(
        host_peak=of_metrics.host_peak or reports.host_peak_gib(report),
        host_limit=reports.host_limit_gib(report),
        gpu_peak=reports.gpu_peak_gib(report),
        gpu_limit=reports.gpu_limit_gib(report),
        made_model=reports.has_model(report),
        lost_seconds=of_metrics.lost_seconds if told is None else told,
        idle=in_words(idle, with_gpus, region) if idle and with_gpus else "",
        filled_disk=filled_disk(report, types[0]) if outcome != "disk" else "",
    )


def _start_seconds(job: dict[str, Any]) -> float | None:
    """From the creation of a training job to the start of its script: instances, image and data; None before it."""
    steps = job.get("SecondaryStatusTransitions", [])
    began = next((step["StartTime"] for step in steps if step["Status"] == "Training"), None)
    return round((began - job["CreationTime"]).total_seconds(), 1) if began else None


def _code(job: dict[str, Any]) -> str:
    """The digest in the key of the code channel; empty for a job without one."""
    for channel in job.get("InputDataConfig", []):
        uri = channel.get("DataSource", {}).get("S3DataSource", {}).get("S3Uri", "")
        if channel.get("ChannelName") == "code" and (found := re.search(r"/code/([0-9a-f]{16})/?$", uri)):
            return found[1]
    return ""
