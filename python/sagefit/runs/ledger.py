"""What the attempts of a run did: read from AWS, never from this machine's memory of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from sagefit.catalog import price
from sagefit.console import command
from sagefit.errors import SagefitError
from sagefit.failures import Diagnosis, classify
from sagefit.runs.clients import sagemaker, step_functions
from sagefit.runs.execution import Run, attempt_index, training_jobs

COMPLETED = "completed"
PEAK_METRIC = "sagefit:host_memory_peak_gib"


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt of a run. Times in seconds, memory in GiB, money in USD.

    ``outcome`` is ``completed``, a failure class, or empty while the attempt runs; ``usd`` is None where no
    published price is known.
    """

    index: int
    name: str
    instance_type: str = ""
    instance_count: int = 1
    spot: bool = False
    training_job: str = ""
    status: str = ""
    outcome: str = ""
    diagnosis: Diagnosis | None = None
    host_peak_gib: float | None = None
    billable_seconds: int | None = None
    usd: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    model: str = ""

    @property
    def evidence(self) -> str:
        """What tells the failure class; empty for an attempt that did not fail."""
        return self.diagnosis.evidence if self.diagnosis else ""


@dataclass(frozen=True)
class RunRecord:
    """A run with its attempts. ``status`` is the execution's: RUNNING, SUCCEEDED, FAILED, ABORTED or TIMED_OUT."""

    run: Run
    status: str
    started: datetime
    ended: datetime | None
    attempts: list[AttemptRecord]
    error: str = ""
    cause: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status != "RUNNING"

    @property
    def succeeded(self) -> bool:
        """Whether an attempt completed."""
        return self.status == "SUCCEEDED"


def read_run(run: Run, *, known: dict[str, AttemptRecord] | None = None) -> RunRecord:
    """The state of ``run`` now.

    ``known`` holds finished attempts of an earlier call by training job, which are not asked for again.
    Raises SagefitError when there is no such run.
    """
    try:
        execution = step_functions().describe_execution(executionArn=run.arn)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("ExecutionDoesNotExist", "StateMachineDoesNotExist"):
            raise SagefitError(f"no run {run.name!r}", hint=f"list them: {command('runs', run.job)}") from error
        raise
    recorded = _recorded(execution.get("output") or execution.get("cause") or "")
    attempts: dict[int, AttemptRecord] = {}
    for summary in training_jobs(run):
        name = summary["TrainingJobName"]
        attempts[attempt_index(name)] = (known or {}).get(name) or _attempt(name, run.platform.region)
    for index, note in recorded.items():
        if index not in attempts:  # the API refused to create this one
            diagnosis = classify(create_error=str(note.get("evidence", "")))
            attempts[index] = AttemptRecord(
                index, str(note.get("attempt", index)), outcome=str(note.get("class", "")), diagnosis=diagnosis
            )
    return RunRecord(
        run,
        execution["status"],
        execution["startDate"],
        execution.get("stopDate"),
        [attempts[index] for index in sorted(attempts)],
        execution.get("error", ""),
        execution.get("cause", ""),
    )


def _attempt(name: str, region: str) -> AttemptRecord:
    job: dict[str, Any] = dict(sagemaker().describe_training_job(TrainingJobName=name))
    resources = job.get("ResourceConfig", {})
    status, secondary = job["TrainingJobStatus"], job["SecondaryStatus"]
    outcome, diagnosis = "", None
    if status == "Completed":
        outcome = COMPLETED
    elif status in ("Failed", "Stopped"):
        diagnosis = classify(job.get("FailureReason"), secondary_status=secondary)
        outcome = diagnosis.failure_class
    metrics = {m["MetricName"]: float(m["Value"]) for m in job.get("FinalMetricDataList", [])}
    seconds = job.get("BillableTimeInSeconds") if outcome else None
    known = price(resources.get("InstanceType", ""), region)
    rate = known.usd_per_hour if known and not known.estimated else None
    count = resources.get("InstanceCount", 1)
    return AttemptRecord(
        index=attempt_index(name),
        name=job.get("Environment", {}).get("SAGEFIT_ATTEMPT", str(attempt_index(name))),
        instance_type=resources.get("InstanceType", ""),
        instance_count=count,
        spot=bool(job.get("EnableManagedSpotTraining")),
        training_job=name,
        status=secondary,
        outcome=outcome,
        diagnosis=diagnosis,
        host_peak_gib=metrics.pop(PEAK_METRIC, None),
        billable_seconds=seconds,
        usd=rate * count * seconds / 3600 if rate is not None and seconds is not None else None,
        metrics={key: value for key, value in metrics.items() if not key.startswith("sagefit:")},
        model=job.get("ModelArtifacts", {}).get("S3ModelArtifacts", "") if outcome == COMPLETED else "",
    )


def _recorded(text: str) -> dict[int, dict[str, Any]]:
    """The attempts that the state machine noted, from its output or its cause; empty when it noted none."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    if isinstance(document, dict) and isinstance(document.get("attempts"), dict):
        document = document["attempts"]
    if not isinstance(document, dict):
        return {}
    return {int(key): note for key, note in document.items() if key.isdigit() and isinstance(note, dict)}
