"""A training job, read as the attempt that it is."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from sagefit.catalog import instances
from sagefit.catalog.hardware import Instances, groups_of, hourly_price
from sagefit.failures import diagnose
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
    resources = job.get("ResourceConfig", {})
    status, secondary = job["TrainingJobStatus"], job["SecondaryStatus"]
    outcome, diagnosis, routed_by = "", None, ""
    output = f"{job.get('OutputDataConfig', {}).get('S3OutputPath', '').rstrip('/')}/{name}/output"
    read, code = cache(lambda: reports.read(output)), _code(job)
    if status == "Completed":
        outcome = COMPLETED
    elif status in ("Failed", "Stopped"):
        diagnosis = evidence.diagnosis_of(job, read)
        outcome = diagnosis.failure_class
        routed_by = diagnose(job.get("FailureReason"), secondary_status=evidence.ended_as(job)).failure_class
    metrics = {m["MetricName"]: float(m["Value"]) for m in job.get("FinalMetricDataList", [])}
    seconds = job.get("BillableTimeInSeconds") if outcome else None
    groups = groups_of(resources)
    one = Instances("", resources.get("InstanceType", ""), resources.get("InstanceCount", 1))
    known = hourly_price(groups or [one], region)
    usd = known.usd_per_hour * seconds / 3600 if known and seconds is not None else None
    estimated = bool(known and known.estimated)
    types = [instances().get(each.instance_type) for each in groups or [one]]
    host_peak, gpu_peak, made = metrics.pop(PEAK_METRIC, None), None, True
    host_limit = gpu_limit = None
    idle, filled = "", ""
    lost = metrics.get(UNSAVED_METRIC)
    # No metric has the GPU peak or what the script left, and on an image with metrics of its own none has anything.
    defined = {metric["Name"] for metric in job["AlgorithmSpecification"].get("MetricDefinitions", [])}
    gpus = any(each and each.gpu_count for each in types)
    if outcome and (gpus or (code and (outcome == COMPLETED or PEAK_METRIC not in defined))):
        report = read()
        host_limit, gpu_limit = reports.host_limit_gib(report), reports.gpu_limit_gib(report)
        host_peak, gpu_peak = host_peak or reports.host_peak_gib(report), reports.gpu_peak_gib(report)
        made = reports.has_model(report)
        found = reports.idle(report)
        with_gpus = next((each for each in types if each and each.gpu_count), None)
        idle = in_words(found, with_gpus, region) if found and with_gpus else ""
        filled = filled_disk(report, types[0]) if outcome != "disk" else ""
        told = reports.lost_seconds(report, kept="CheckpointConfig" in job)
        lost = lost if told is None else told
    growth = ""
    if outcome == "host_memory":
        growth, host_limit = reports.growth(read()), reports.host_limit_gib(read())
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
        status=secondary,
        outcome=outcome,
        diagnosis=diagnosis,
        host_peak_gib=host_peak,
        billable_seconds=seconds,
        usd=None if estimated else usd,
        estimated_usd=usd if estimated else None,
        metrics={key: value for key, value in metrics.items() if not key.startswith("sagefit:")},
        model=job.get("ModelArtifacts", {}).get("S3ModelArtifacts", "") if outcome == COMPLETED else "",
        host_limit_gib=host_limit if host_peak is not None else None,
        gpu_peak_gib=gpu_peak,
        gpu_limit_gib=gpu_limit if gpu_peak is not None else None,
        hyperparameters=dict(job.get("HyperParameters", {})),
        model_is_empty=outcome == COMPLETED and not made,
        lost_seconds=lost if diagnosis else None,
        growth=growth,
        idle=idle,
        filled_disk=filled,
        interruptions=sum(
            step["Status"] in ("Interrupted", "Restarting") for step in job.get("SecondaryStatusTransitions", [])
        ),
        code=code,
        output=output,
        failure_reason=job.get("FailureReason", ""),
        routed_by=routed_by if routed_by != outcome else "",
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
