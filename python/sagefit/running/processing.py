"""The processing steps of a run: what each did, and the one that is left running."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from sagefit.catalog import price
from sagefit.failures import Diagnosis, decided, diagnose
from sagefit.running.clients import sagemaker
from sagefit.running.lists import created
from sagefit.running.logs import HOSTS, tails
from sagefit.running.records import StepRecord

LOG_GROUP = "/aws/sagemaker/ProcessingJobs"
_LABEL = "processing "


def running_steps(run: str, began: datetime) -> list[str]:
    """The processing jobs of a run that are in progress, by name; ``began`` is the start of its execution."""
    return [name for name, status in _processing_jobs(run, began).items() if status == "InProgress"]


def read_steps(
    run: str,
    region: str,
    notes: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, StepRecord],
    began: datetime,
    ended: datetime | None,
) -> list[StepRecord]:
    """The steps of a run that were begun, in order.

    ``began`` and ``ended`` are the times of its execution; None while it goes on.
    ``notes`` is what the state machine wrote down of failures, ``p0`` being the first step. ``known`` holds completed
    steps by processing job, which are not asked for again.
    """
    jobs = _processing_jobs(run, began, ended)
    steps = [known.get(name) or _read(name, region) for name in jobs]
    for key, note in notes.items():
        if note.get("training_job") not in jobs:  # refused at creation
            name = str(note.get("attempt", key)).removeprefix(_LABEL)
            diagnosis = replace(diagnose(create_error=str(note.get("evidence", ""))), step=name)
            steps.append(StepRecord(_index(key), name, outcome=str(note.get("class", "")), diagnosis=diagnosis))
    return sorted(steps, key=lambda step: step.index)


def _processing_jobs(run: str, began: datetime, ended: datetime | None = None) -> dict[str, str]:
    """Names and statuses of a run's processing jobs: <run>-p<index>, with a letter where AWS lost the one before."""
    pages = sagemaker().get_paginator("list_processing_jobs")
    found_in = pages.paginate(NameContains=f"{run}-p", **created(began, ended))
    listed = [summary for page in found_in for summary in page["ProcessingJobSummaries"]]
    found = {summary["ProcessingJobName"]: str(summary["ProcessingJobStatus"]) for summary in listed}
    return {name: found[name] for name in sorted(found) if re.fullmatch(rf"{re.escape(run)}-p\d[a-z]?", name)}


def _index(job: str) -> int:
    """The place of a step, by the end of its processing job's name."""
    return int(re.sub(r"\D", "", job.rpartition("-")[2]))


def _read(name: str, region: str) -> StepRecord:
    job: dict[str, Any] = dict(sagemaker().describe_processing_job(ProcessingJobName=name))
    cluster = job["ProcessingResources"]["ClusterConfig"]
    ml_type, count = cluster.get("InstanceType", ""), cluster.get("InstanceCount", 1)
    status = str(job["ProcessingJobStatus"])
    step = _step_name(job) or f"p{_index(name)}"
    diagnosis = replace(_diagnose(job), step=step) if status in ("Failed", "Stopped") else None
    began, seconds = job.get("ProcessingStartTime"), None
    if "ProcessingEndTime" in job:
        ended = job["ProcessingEndTime"]
        seconds = round((ended - (began or ended)).total_seconds())
    known = price(ml_type, region)
    usd = known.usd_per_hour * count * seconds / 3600 if known and seconds is not None else None
    estimated = bool(known and known.estimated)
    return StepRecord(
        index=_index(name),
        name=step,
        instance_type=ml_type,
        instance_count=count,
        processing_job=name,
        status=status,
        outcome="completed" if status == "Completed" else diagnosis.failure_class if diagnosis else "",
        diagnosis=diagnosis,
        billable_seconds=seconds,
        usd=None if estimated else usd,
        estimated_usd=usd if estimated else None,
        created=job["CreationTime"],
        ended=job.get("ProcessingEndTime"),
        start_seconds=(began - job["CreationTime"]).total_seconds() if began else None,
    )


def _step_name(job: Mapping[str, Any]) -> str:
    """A description has no tags, but its outputs lie in the step's folder."""
    outputs = job.get("ProcessingOutputConfig", {}).get("Outputs", [])
    uris = [output["S3Output"]["S3Uri"] for output in outputs if "S3Output" in output]
    found = re.search(r"/processing/([^/]+)/[^/]+/?$", uris[0]) if uris else None
    return found[1] if found else ""


def _diagnose(job: Mapping[str, Any]) -> Diagnosis:
    """Why a processing job did not complete: by what SageMaker and the container say, and by the end of its logs."""
    reason = ": ".join(filter(None, (job.get("FailureReason"), job.get("ExitMessage")))) or None
    hosts = min(HOSTS, int(job["ProcessingResources"]["ClusterConfig"].get("InstanceCount") or 1))
    status = str(job["ProcessingJobStatus"])
    if found := decided(reason, secondary_status=status, hosts=hosts):
        return found
    try:
        log = tails(str(job["ProcessingJobName"]), LOG_GROUP)
    except ClientError:
        log = {}
    return diagnose(reason, secondary_status=status, log=log)
