"""A run is one execution of the job's state machine."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from sagefit.console import command
from sagefit.errors import FAILED, SagefitError
from sagefit.job import Job, job_names, load_job
from sagefit.platform import Platform, load_platform
from sagefit.running.clients import sagemaker, step_functions
from sagefit.running.lists import created
from sagefit.running.names import attempt_index, attempt_job
from sagefit.running.processing import running_steps
from sagefit.running.records import Run

if TYPE_CHECKING:
    from datetime import datetime

    from mypy_boto3_sagemaker.type_defs import TrainingJobSummaryTypeDef
    from mypy_boto3_stepfunctions.type_defs import ExecutionListItemTypeDef

_STAMPED = re.compile(r"(?P<job>.+)-\d{6}-\d{6}")


def find_run(reference: str) -> Run:
    """The run that ``reference`` names: a run name, or the name of a job for its latest run.

    Raises SagefitError when there is none.
    """
    names = job_names()
    if reference in names or reference.endswith((".yaml", ".yml")):
        job = load_job(reference, uploads=False)
        platform = load_platform(job.platform)
        runs = latest_runs(job.name, platform, limit=1)
        if not runs:
            raise SagefitError(f"{job.name} has no runs yet", hint=f"start one: {command('run', reference)}")
        return runs[0]
    stamped = _STAMPED.fullmatch(reference)
    # A scheduled run is named <job>-<id>, where a long job name is cut.
    scheduled = sorted((n for n in names if reference.startswith(f"{n[:22]}-")), key=len, reverse=True)
    for candidate in [stamped["job"]] if stamped else scheduled:
        if candidate in names:
            return Run(reference, candidate, load_platform(load_job(candidate, uploads=False).platform))
        found = _platform_with(candidate)
        if found:
            return Run(reference, candidate, found)
    raise SagefitError(
        f"{reference!r} is neither a run nor a job here",
        hint=f"a run is named <job>-<yymmdd-hhmmss>; list them: {command('runs')}",
    )


def _platform_with(job: str) -> Platform | None:
    """The platform that has a state machine for ``job``, whose file may lie anywhere."""
    for page in step_functions().get_paginator("list_state_machines").paginate():
        for machine in page["stateMachines"]:
            named = re.fullmatch(rf"sagefit-(.+)-{re.escape(job)}", machine["name"])
            if named:
                with contextlib.suppress(SagefitError):  # "a-b" of platform "c" reads like "b" of platform "c-a"
                    return load_platform(named[1])
    return None


def latest_runs(job: str, platform: Platform, *, limit: int = 10) -> list[Run]:
    """The newest runs of a job, newest first; empty when the job was never applied."""
    found = _executions(job, platform, {"PaginationConfig": {"MaxItems": limit}})
    newest = sorted(found, key=lambda execution: execution["startDate"], reverse=True)
    return [Run(execution["name"], job, platform) for execution in newest]


def runs(job: Job, *, limit: int = 10) -> list[Run]:
    """The newest runs of a job, newest first, ``limit`` at most; none when it was never applied.

    Raises SagefitError when its platform was never applied.
    """
    return latest_runs(job.name, load_platform(job.platform), limit=limit)


def running_runs(job: str, platform: Platform) -> list[Run]:
    """The runs of a job that are in progress."""
    return [
        Run(execution["name"], job, platform) for execution in _executions(job, platform, {"statusFilter": "RUNNING"})
    ]


def _executions(job: str, platform: Platform, options: dict[str, Any]) -> list[ExecutionListItemTypeDef]:
    pages = step_functions().get_paginator("list_executions")
    try:
        found = pages.paginate(stateMachineArn=platform.state_machine_arn(job), **options)
        return [execution for page in found for execution in page["executions"]]
    except ClientError as error:
        if error.response["Error"]["Code"] == "StateMachineDoesNotExist":
            return []
        raise


def stop(run: Run) -> list[str]:
    """Stop the execution, then the job it left running; returns the names of the stopped jobs.

    Raises SagefitError for a run that is over, or not there.

    The order matters: a state machine that still runs would treat a stopped training job as ended and continue. What
    runs is asked before and after: a job may be created meanwhile, and the platform, which stops jobs of ended runs
    too, may be quicker.
    """
    try:
        execution = step_functions().describe_execution(executionArn=run.arn)
        if execution["status"] != "RUNNING":
            raise SagefitError(f"{run.name} is over already: {execution['status'].lower()}", exit_code=FAILED)
        began = execution["startDate"]
        running = _running(run, began)
        step_functions().stop_execution(executionArn=run.arn, error="Sagefit.stopped", cause="stopped by a person")
    except ClientError as error:
        if error.response["Error"]["Code"] != "ExecutionDoesNotExist":
            raise
        raise SagefitError(f"no run {run.name!r}", hint=f"list them: {command('runs', run.job)}") from error
    running |= _running(run, began)
    for name, ask in running.items():
        try:
            ask(name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationException":  # it has ended, or is ending, meanwhile
                raise
    return list(running)


def _running(run: Run, began: datetime) -> dict[str, Callable[[str], Any]]:
    """The jobs of a run that are in progress: how each is stopped, by its name.

    A tuning job has a query of its own, because it may not have a training job yet.
    """
    client = sagemaker()
    found: dict[str, Callable[[str], Any]] = {
        name: lambda name: client.stop_processing_job(ProcessingJobName=name) for name in running_steps(run.name, began)
    }
    pages = client.get_paginator("list_hyper_parameter_tuning_jobs").paginate(
        NameContains=f"{run.name}-", **created(began)
    )
    for tuning in [summary for page in pages for summary in page["HyperParameterTuningJobSummaries"]]:
        if tuning["HyperParameterTuningJobStatus"] == "InProgress":
            found[tuning["HyperParameterTuningJobName"]] = lambda name: client.stop_hyper_parameter_tuning_job(
                HyperParameterTuningJobName=name
            )
    for summary in training_jobs(run, began):
        name = summary["TrainingJobName"]
        if summary["TrainingJobStatus"] == "InProgress" and attempt_job(name) == name:
            found[name] = lambda name: client.stop_training_job(TrainingJobName=name)
    return found


def training_jobs(run: Run, began: datetime, ended: datetime | None = None) -> list[TrainingJobSummaryTypeDef]:
    """The training jobs of a run in the order of its attempts: names and statuses.

    ``began`` and ``ended`` are the times of its execution; None while it goes on.
    Their names are <run>-<index>, then <run>-<index>b, <run>-<index>c when the same attempt was tried again. Training
    jobs of a tuning job have the name of the tuning job, which has that form, and a suffix.
    """
    pages = sagemaker().get_paginator("list_training_jobs")
    listed = pages.paginate(NameContains=f"{run.name}-", **created(began, ended))
    found = [summary for page in listed for summary in page["TrainingJobSummaries"]]
    own = [
        summary
        for summary in found
        if re.fullmatch(rf"{re.escape(run.name)}-\d+[a-z]?", attempt_job(summary["TrainingJobName"]))
    ]
    return sorted(own, key=lambda s: (attempt_index(s["TrainingJobName"]), s["TrainingJobName"]))
