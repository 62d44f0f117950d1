"""What the attempts of a run did: read from AWS, never from this machine's memory of it."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from typing import Any

from botocore.exceptions import ClientError

from sagefit.answers import answered_at
from sagefit.console import command
from sagefit.errors import SagefitError
from sagefit.failures import diagnose
from sagefit.machine import Definition, read_definition
from sagefit.running.clients import step_functions
from sagefit.running.execution import training_jobs
from sagefit.running.names import attempt_job
from sagefit.running.processing import read_steps
from sagefit.running.records import AttemptRecord, Run, RunRecord, StepRecord
from sagefit.running.training import read_training_job
from sagefit.running.tuning import searched


def read_run(
    run: Run, *, known: dict[str, AttemptRecord] | None = None, steps: dict[str, StepRecord] | None = None
) -> RunRecord:
    """The state of ``run`` now.

    ``known`` holds finished attempts of an earlier call by training job, and ``steps`` completed steps by processing
    job. They are not read again.
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
    began, ended = execution["startDate"], execution.get("stopDate")
    listed = [summary["TrainingJobName"] for summary in training_jobs(run, began, ended)]
    made = {attempt_job(name): name for name in listed}
    for name, training_job in made.items():
        attempts.append((known or {}).get(name) or _read(name, training_job, run.platform.region))
    attempts = [_routed(attempt, recorded.get(attempt.index, {})) for attempt in attempts]
    for index, note in recorded.items():
        if attempt_job(str(note.get("training_job"))) not in made:  # refused at creation
            diagnosis = diagnose(create_error=str(note.get("evidence", "")))
            refused = AttemptRecord(index, str(note.get("attempt", index)), diagnosis=diagnosis)
            attempts.append(_asked_for(run.platform.state_machine_arn(run.job), refused, str(note.get("class", ""))))
    return RunRecord(
        run,
        execution["status"],
        began,
        ended,
        _linked(sorted(attempts, key=lambda attempt: attempt.index)),
        execution.get("error", ""),
        execution.get("cause", ""),
        read_steps(run.name, run.platform.region, of_steps, steps or {}, began, ended),
        _resumes(execution.get("input") or ""),
        answered_at(execution) or datetime.now(timezone.utc),
    )


def _asked_for(machine: str, refused: AttemptRecord, outcome: str) -> AttemptRecord:
    """An attempt without a training job, with the instances it was refused: those of the job as it is applied now."""
    definition = _definition(machine)
    planned = {attempt.name: attempt for attempt in definition.attempts} if definition else {}
    if asked := planned.get(refused.name):
        refused = replace(
            refused,
            instance_type=asked.instance_type,
            instance_count=asked.instance_count,
            spot=asked.spot,
            groups=[str(group) for group in asked.instance_groups],
        )
    return replace(refused, outcome=outcome)


@cache
def _definition(machine: str) -> Definition | None:
    """The job as it is applied, asked for once; None where it may not be seen, or is gone."""
    with contextlib.suppress(ClientError):
        return read_definition(step_functions().describe_state_machine(stateMachineArn=machine)["definition"])
    return None


def _read(name: str, training_job: str, region: str) -> AttemptRecord:
    return read_training_job(name, region) if name == training_job else searched(name, training_job, region)


def _routed(attempt: AttemptRecord, note: dict[str, Any]) -> AttemptRecord:
    """``attempt`` with the class that the state machine noted for it."""
    if attempt_job(str(note.get("training_job"))) != attempt.training_job or not note.get("class"):
        return attempt
    return replace(attempt, routed_by=str(note["class"]) if note["class"] != attempt.outcome else "")


def _linked(attempts: list[AttemptRecord]) -> list[AttemptRecord]:
    """Each attempt with the reason it was started and the step that followed: a run follows the edges of `next`."""
    linked = []
    for before, attempt, after in zip([None, *attempts], attempts, [*attempts[1:], None], strict=False):
        ended_as = (before.routed_by or before.outcome or before.status) if before else ""
        why = f"{ended_as} of {before.name}" if before else "the first attempt"
        step = next(iter(attempt.diagnosis.remedies), "") if attempt.diagnosis else ""
        if after:
            step = "tried again" if after.index == attempt.index else f"on to {after.name}"
        linked.append(replace(attempt, started_by=why, next_step=step))
    return linked


def _resumes(given: str) -> str:
    """The run whose checkpoints a run began with, from the input of its execution."""
    try:
        found = json.loads(given).get("resumes", "")
    except (ValueError, AttributeError):  # of a schedule, or of somebody else
        return ""
    return found if isinstance(found, str) else ""


def _notes(text: str) -> dict[str, dict[str, Any]]:
    """The state machine's notes, from its output or its cause: by index for attempts, by ``p0`` and so on for steps."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    if isinstance(document, dict) and isinstance(document.get("attempts"), dict):
        document = document["attempts"]
    if not isinstance(document, dict):
        return {}
    return {key: note for key, note in document.items() if re.fullmatch(r"p?\d+", key) and isinstance(note, dict)}
