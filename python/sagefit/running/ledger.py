"""What the attempts of a run did: read from AWS, never from this machine's memory of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from sagefit.catalog import instances
from sagefit.catalog.hardware import Instances, groups_of, hourly_price
from sagefit.console import command
from sagefit.errors import SagefitError
from sagefit.failures import Diagnosis, diagnose
from sagefit.running import evidence, reports
from sagefit.running.clients import sagemaker, step_functions
from sagefit.running.execution import Run, attempt_index, training_jobs
from sagefit.running.processing import StepRecord, read_steps
from sagefit.running.tuning import Search, attempt_job, searched

COMPLETED = "completed"
PEAK_METRIC = "sagefit:host_memory_peak_gib"


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt of a run. Times in seconds, memory in GiB (per GPU, per host), money in USD.

    ``outcome`` is ``completed``, a failure class, or empty while the attempt runs; ``usd`` is None where no
    published price is known, and ``estimated_usd`` what it is by an estimated one. ``started_by`` says why there is
    this attempt and ``next_step`` what followed. ``predicted_gpu_gib`` and ``predicted_host_gib`` are what the formulas
    say today; see `expected`. ``code`` is the digest of its code and ``output`` the folder of what it left.
    ``routed_by`` is the class that the run went on with where it is another: a state machine reads ``failure_reason``
    alone, and ``outcome`` comes from logs and utilisation too. ``search`` is what a tuning job has tried, which is then
    the ``training_job`` of the attempt. ``groups`` are its instance groups in words, and ``start_seconds`` the time
    from its creation to the start of the script.
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
    estimated_usd: float | None = None
    started_by: str = ""
    next_step: str = ""
    gpu_peak_gib: float | None = None
    predicted_gpu_gib: float | None = None
    predicted_host_gib: float | None = None
    hyperparameters: dict[str, str] = field(default_factory=dict)
    code: str = ""
    output: str = ""
    failure_reason: str = ""
    routed_by: str = ""
    groups: list[str] = field(default_factory=list)
    start_seconds: float | None = None
    search: Search | None = None

    @property
    def log_job(self) -> str:
        """The training job whose log tells how the attempt ended."""
        return self.search.told_by if self.search else self.training_job

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
    steps: list[StepRecord] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status != "RUNNING"

    @property
    def succeeded(self) -> bool:
        """Whether an attempt completed."""
        return self.status == "SUCCEEDED"


def read_run(
    run: Run, *, known: dict[str, AttemptRecord] | None = None, steps: dict[str, StepRecord] | None = None
) -> RunRecord:
    """The state of ``run`` now.

    ``known`` holds finished attempts of an earlier call by training job, and ``steps`` completed steps by processing
    job, which are not asked for again.
    Raises SagefitError when there is no such run.
    """
    try:
        execution = step_functions().describe_execution(executionArn=run.arn)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("ExecutionDoesNotExist", "StateMachineDoesNotExist"):
            raise SagefitError(f"no run {run.name!r}", hint=f"list them: {command('runs', run.job)}") from error
        raise
    notes = _notes(execution.get("output") or execution.get("cause") or "")
    recorded = {int(key): note for key, note in notes.items() if key.isdigit()}
    of_steps = {key: note for key, note in notes.items() if not key.isdigit()}
    attempts = []
    made = {attempt_job(summary["TrainingJobName"]): summary["TrainingJobName"] for summary in training_jobs(run)}
    for name, training_job in made.items():
        attempts.append((known or {}).get(name) or _read(name, training_job, run.platform.region))
    attempts = [_routed(attempt, recorded.get(attempt.index, {})) for attempt in attempts]
    for index, note in recorded.items():
        if attempt_job(str(note.get("training_job"))) not in made:  # refused at creation
            diagnosis = diagnose(create_error=str(note.get("evidence", "")))
            refused = str(note.get("attempt", index)), str(note.get("class", ""))
            attempts.append(AttemptRecord(index, refused[0], outcome=refused[1], diagnosis=diagnosis))
    return RunRecord(
        run,
        execution["status"],
        execution["startDate"],
        execution.get("stopDate"),
        _linked(sorted(attempts, key=lambda attempt: attempt.index)),
        execution.get("error", ""),
        execution.get("cause", ""),
        read_steps(run.name, run.platform.region, of_steps, steps or {}),
    )


def _read(name: str, training_job: str, region: str) -> AttemptRecord:
    return _attempt(name, region) if name == training_job else searched(name, training_job, region, _attempt)


def _start_seconds(job: dict[str, Any]) -> float | None:
    """From the creation of a training job to the start of its script: instances, image and data; None before it."""
    steps = job.get("SecondaryStatusTransitions", [])
    began = next((step["StartTime"] for step in steps if step["Status"] == "Training"), None)
    return round((began - job["CreationTime"]).total_seconds(), 1) if began else None


def _attempt(name: str, region: str) -> AttemptRecord:
    job: dict[str, Any] = dict(sagemaker().describe_training_job(TrainingJobName=name))
    resources = job.get("ResourceConfig", {})
    status, secondary = job["TrainingJobStatus"], job["SecondaryStatus"]
    outcome, diagnosis, routed_by = "", None, ""
    output = f"{job.get('OutputDataConfig', {}).get('S3OutputPath', '').rstrip('/')}/{name}/output"
    if status == "Completed":
        outcome = COMPLETED
    elif status in ("Failed", "Stopped"):
        diagnosis = evidence.diagnosis_of(job, output)
        outcome = diagnosis.failure_class
        routed_by = diagnose(job.get("FailureReason"), secondary_status=secondary).failure_class
    metrics = {m["MetricName"]: float(m["Value"]) for m in job.get("FinalMetricDataList", [])}
    seconds = job.get("BillableTimeInSeconds") if outcome else None
    groups = groups_of(resources)
    one = Instances("", resources.get("InstanceType", ""), resources.get("InstanceCount", 1))
    known = hourly_price(groups or [one], region)
    usd = known.usd_per_hour * seconds / 3600 if known and seconds is not None else None
    estimated = bool(known and known.estimated)
    types = [instances().get(each.instance_type) for each in groups or [one]]
    gpu_peak = None
    if outcome and any(
        each and each.gpu_count for each in types
    ):  # the log has no peak of a GPU, so the report is worth its call
        gpu_peak = reports.gpu_peak_gib(reports.read(output))
    return AttemptRecord(
        index=attempt_index(name),
        name=job.get("Environment", {}).get("SAGEFIT_ATTEMPT", str(attempt_index(name))),
        instance_type=one.instance_type,
        instance_count=sum(each.instance_count for each in groups) or one.instance_count,
        groups=[str(each) for each in groups],
        start_seconds=_start_seconds(job),
        spot=bool(job.get("EnableManagedSpotTraining")),
        training_job=name,
        status=secondary,
        outcome=outcome,
        diagnosis=diagnosis,
        host_peak_gib=metrics.pop(PEAK_METRIC, None),
        billable_seconds=seconds,
        usd=None if estimated else usd,
        estimated_usd=usd if estimated else None,
        metrics={key: value for key, value in metrics.items() if not key.startswith("sagefit:")},
        model=job.get("ModelArtifacts", {}).get("S3ModelArtifacts", "") if outcome == COMPLETED else "",
        gpu_peak_gib=gpu_peak,
        hyperparameters=dict(job.get("HyperParameters", {})),
        code=_code(job),
        output=output,
        failure_reason=job.get("FailureReason", ""),
        routed_by=routed_by if routed_by != outcome else "",
    )


def _routed(attempt: AttemptRecord, note: dict[str, Any]) -> AttemptRecord:
    """``attempt`` with the class that the state machine noted for it."""
    if attempt_job(str(note.get("training_job"))) != attempt.training_job or not note.get("class"):
        return attempt
    return replace(attempt, routed_by=str(note["class"]) if note["class"] != attempt.outcome else "")


def _code(job: dict[str, Any]) -> str:
    """The digest in the key of the code channel; empty for a job without one."""
    for channel in job.get("InputDataConfig", []):
        uri = channel.get("DataSource", {}).get("S3DataSource", {}).get("S3Uri", "")
        if channel.get("ChannelName") == "code" and (found := re.search(r"/code/([0-9a-f]{16})/?$", uri)):
            return found[1]
    return ""


def _linked(attempts: list[AttemptRecord]) -> list[AttemptRecord]:
    """Each attempt with why it was made and what came of it: a run goes from one to the next by an edge of `next`."""
    linked = []
    for before, attempt, after in zip([None, *attempts], attempts, [*attempts[1:], None], strict=False):
        ended_as = (before.routed_by or before.outcome or before.status) if before else ""
        why = f"{ended_as} of {before.name}" if before else "the first attempt"
        step = next(iter(attempt.diagnosis.remedies), "") if attempt.diagnosis else ""
        if after:
            step = "tried again" if after.index == attempt.index else f"on to {after.name}"
        linked.append(replace(attempt, started_by=why, next_step=step))
    return linked


def _notes(text: str) -> dict[str, dict[str, Any]]:
    """What the state machine noted, from its output or its cause: of attempts by their place, of steps by ``p0``."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    if isinstance(document, dict) and isinstance(document.get("attempts"), dict):
        document = document["attempts"]
    if not isinstance(document, dict):
        return {}
    return {key: note for key, note in document.items() if re.fullmatch(r"p?\d+", key) and isinstance(note, dict)}
