"""What was seen of a run, as a file: statuses, errors and times as AWS told them, without what tells whose they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sagefit.running import RunRecord
from sagefit.running.clients import sagemaker, step_functions

ACCOUNT = "123456789012"
_KEY_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_NETWORK = re.compile(r"\b(subnet|sg|vpc|vpce|eni|pl)-[0-9a-f]{8,17}\b")
_MEASURED = re.compile(r"\b\d+\.\d+(?= of \d| ?(?:GiB|MiB|s|%)(?!\w))")  # an amount within a text
_ADDRESS = re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b")


def of_run(record: RunRecord) -> dict[str, Any]:
    """What AWS tells of a run that is over, of its jobs, and what Sagefit made of it."""
    seen = {
        "status": record.status,
        "error": record.error,
        "cause": _plain(record.cause),
        "seconds": _seconds(record.started, record.ended),
        **_history(record),
        "steps": [_step(step.name, step.outcome, step.processing_job) for step in record.steps],
        "attempts": [
            {
                "name": attempt.name,
                "outcome": attempt.outcome,
                "evidence": attempt.evidence,
                "by_the_reason_alone": attempt.routed_by or attempt.outcome,
                **(_search(attempt.training_job) if attempt.search else _training(attempt.training_job)),
            }
            for attempt in record.attempts
        ],
    }
    found: dict[str, Any] = json.loads(anonymous(json.dumps(seen), record))
    return found


def anonymous(text: str, record: RunRecord) -> str:
    """``text`` without the account, names of the run, ids of keys and networks, and addresses."""
    text = text.replace(record.run.platform.account_id, ACCOUNT).replace(record.run.name, f"{record.run.job}-RUN")
    text = _KEY_ID.sub("00000000-0000-0000-0000-000000000000", text)
    return _ADDRESS.sub("0.0.0.0", _NETWORK.sub(r"\1-0", text))  # noqa: S104 - nothing listens


def warm_pool(seen: Mapping[str, Any]) -> str | None:
    """What became of the instances that the last attempt of a run kept."""
    attempts = seen["attempts"]
    told = attempts[-1].get("job", {}).get("WarmPoolStatus") if attempts else None
    return str(told["Status"]) if told else None


def differences(found: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Where runs of a case, as `of_run` tells them, differ from those of another cloud.

    Times and measured amounts are not compared, within texts neither: how far a process was when it was killed is
    another number each time.
    """
    if len(found) != len(before):
        yield f"{len(found)} runs, and {len(before)} there"
    for number, (here, there) in enumerate(zip(found, before, strict=False), start=1):
        which = f"run {number}: " if len(found) > 1 else ""
        for path in sorted(_texts(here).keys() | _texts(there).keys()):
            one, other = _texts(here).get(path), _texts(there).get(path)
            if _unmeasured(one) != _unmeasured(other):
                yield f"{which}{path}: {_quoted(one)}, and {_quoted(other)} there"


def _unmeasured(text: str | None) -> str:
    return _MEASURED.sub("0.0", text or "")


def _quoted(text: str | None) -> str:
    return "nothing" if text is None else repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


_LONGEST = 200


def _texts(value: Any, path: str = "") -> dict[str, str]:
    """The texts of a document by their paths; numbers are times and counts, which differ from run to run."""
    if isinstance(value, Mapping):
        inner = [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]
    elif isinstance(value, list):
        inner = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
    else:
        return {path: value} if isinstance(value, str) and value else {}
    return {place: text for place, each in inner for place, text in _texts(each, place).items()}


def _history(record: RunRecord) -> dict[str, Any]:
    """The states that the run entered, each once, and what failed in them: by the history of its execution."""
    pages = step_functions().get_paginator("get_execution_history").paginate(executionArn=record.run.arn)
    states: dict[str, None] = {}
    errors = []
    for event in (event for page in pages for event in page["events"]):
        entered = event.get("stateEnteredEventDetails")
        if entered:
            states[entered["name"]] = None
        for details in (event.get("taskFailedEventDetails"), event.get("executionFailedEventDetails")):
            if details:
                told = {"error": details.get("error", ""), "cause": _plain(details.get("cause", ""))}
                errors.append({"state": next(reversed(states), ""), **told})
    return {"states": list(states), "errors": errors}


def _training(name: str) -> dict[str, Any]:
    if not name:
        return {}
    job: dict[str, Any] = dict(sagemaker().describe_training_job(TrainingJobName=name))
    told = ("TrainingJobStatus", "SecondaryStatus", "FailureReason", "TrainingTimeInSeconds", "BillableTimeInSeconds")
    pool = job.get("WarmPoolStatus")
    return {
        "job": {key: job[key] for key in told if key in job}
        | ({"WarmPoolStatus": {"Status": pool["Status"]}} if pool else {})
        | {"SecondaryStatusTransitions": [_transition(each) for each in job.get("SecondaryStatusTransitions", [])]}
    }


def _transition(step: Mapping[str, Any]) -> dict[str, Any]:
    told = {key: step[key] for key in ("Status", "StatusMessage") if key in step}
    return told | {"seconds": _seconds(step["StartTime"], step.get("EndTime"))}


def _search(name: str) -> dict[str, Any]:
    client = sagemaker()
    job: dict[str, Any] = dict(client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name))
    told = ("HyperParameterTuningJobStatus", "FailureReason", "TrainingJobStatusCounters")
    listed = client.get_paginator("list_training_jobs_for_hyper_parameter_tuning_job")
    pages = listed.paginate(HyperParameterTuningJobName=name)
    trials = sorted(trial["TrainingJobName"] for page in pages for trial in page["TrainingJobSummaries"])
    return {"search": {key: job[key] for key in told if key in job}, "trials": [_training(trial) for trial in trials]}


def _step(name: str, outcome: str, job_name: str) -> dict[str, Any]:
    step: dict[str, Any] = {"name": name, "outcome": outcome}
    if not job_name:
        return step
    job: dict[str, Any] = dict(sagemaker().describe_processing_job(ProcessingJobName=job_name))
    told = ("ProcessingJobStatus", "FailureReason", "ExitMessage")
    seconds = _seconds(job.get("ProcessingStartTime"), job.get("ProcessingEndTime"))
    return step | {"job": {key: job[key] for key in told if key in job} | {"seconds": seconds}}


def _seconds(began: datetime | None, ended: datetime | None) -> float | None:
    return round((ended - began).total_seconds(), 1) if began and ended else None


def _plain(text: str) -> Any:
    """A cause that is JSON as what it says, so that texts in it can be compared."""
    try:
        return json.loads(text)
    except ValueError:
        return text
