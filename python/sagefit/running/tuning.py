"""An attempt that is a tuning job: its trials read and told as one attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sagefit.catalog import price
from sagefit.failures import diagnose
from sagefit.running.clients import sagemaker
from sagefit.running.lists import PAGE
from sagefit.running.records import AttemptRecord, Search
from sagefit.running.training import read_training_job

MOST_READ = 30
"""How many trials are read in detail: the best, the newest failures, then the newest of the rest."""
_NOT_OF_THE_SCRIPT = ("sagemaker_", "_tuning_objective_metric")
_ENDED = ("Completed", "Failed", "Stopped")
_OF_THE_FULLEST = (
    *("index", "name", "instance_type", "instance_count", "spot", "groups", "code", "output"),
    *("host_peak_gib", "gpu_peak_gib", "host_limit_gib", "gpu_limit_gib", "predicted_gpu_gib", "predicted_host_gib"),
)


def searched(name: str, training_job: str, region: str) -> AttemptRecord:
    """The tuning job ``name`` as an attempt.

    ``training_job`` is one of its trials. It is read when the tuning job's own list is late and still empty.

    Hardware, peaks, code, output and hyperparameters come from the trial that used most memory; metrics, model and what
    its GPUs waited for from the best trial; interruptions are those of all. A search that failed has the failure of its
    newest failed trial, with what that one's memory and disk show. No trial's work is lost to the search.
    """
    job: dict[str, Any] = dict(sagemaker().describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name))
    trials = list(_trials(name))
    search, status = _search(job, trials), job["HyperParameterTuningJobStatus"]
    over = status in _ENDED
    shown = [
        read_training_job(trial["TrainingJobName"], region)
        for trial in _worth_reading(trials, search)[: None if over else 1]
    ]
    shown = shown or [read_training_job(training_job, region)]
    fullest = max(shown, key=lambda record: (record.gpu_peak_gib or 0.0, record.host_peak_gib or 0.0))
    record = AttemptRecord(
        **_fields(fullest, *_OF_THE_FULLEST),
        training_job=name,
        status=status,
        hyperparameters={k: v for k, v in fullest.hyperparameters.items() if not k.startswith(_NOT_OF_THE_SCRIPT)},
        search=search,
        interruptions=sum(each.interruptions for each in shown),
        created=job["CreationTime"],
        ended=job.get("HyperParameterTuningEndTime"),
    )
    if not over:
        return record
    return replace(_judged(record, shown, job), **_bill(record, trials, shown, region))


def _judged(record: AttemptRecord, shown: list[AttemptRecord], job: dict[str, Any]) -> AttemptRecord:
    """How the search ended."""
    best = job.get("BestTrainingJob", {}).get("TrainingJobName")
    status, reason = job["HyperParameterTuningJobStatus"], job.get("FailureReason", "")
    if status == "Completed" and best:
        won = next((each for each in shown if each.training_job == best), None)
        if won is None:  # the list is behind
            return replace(record, outcome="completed")
        return replace(
            record, **_fields(won, "metrics", "model", "model_is_empty", "idle"), outcome=won.outcome or "completed"
        )
    failed = [each for each in shown if each.status == "Failed"]
    if status == "Stopped" or not failed:
        diagnosis = diagnose(reason or None, secondary_status=status)
        return replace(record, outcome=diagnosis.failure_class, diagnosis=diagnosis, failure_reason=reason)
    told = ("outcome", "diagnosis", "routed_by", "failure_reason", "growth", "filled_disk")
    return replace(record, **_fields(failed[0], *told))


def _fields(record: AttemptRecord, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _bill(
    record: AttemptRecord, trials: list[dict[str, Any]], shown: list[AttemptRecord], region: str
) -> dict[str, Any]:
    """Seconds of all trials and their price; of those that were not read, the time from their start to their end."""
    read = {each.training_job: each.billable_seconds for each in shown}
    seconds = sum(read.get(trial["TrainingJobName"]) or _seconds(trial) for trial in trials)
    known = price(record.instance_type, region)
    usd = known.usd_per_hour * record.instance_count * seconds / 3600 if known else None
    estimated = bool(known and known.estimated)
    return {
        "billable_seconds": seconds,
        "usd": None if estimated else usd,
        "estimated_usd": usd if estimated else None,
    }


def _seconds(trial: dict[str, Any]) -> int:
    if "TrainingStartTime" not in trial or "TrainingEndTime" not in trial:
        return 0
    return int((trial["TrainingEndTime"] - trial["TrainingStartTime"]).total_seconds())


def _search(job: dict[str, Any], trials: list[dict[str, Any]]) -> Search:
    config, best = job["HyperParameterTuningJobConfig"], job.get("BestTrainingJob", {})
    statuses = [trial["TrainingJobStatus"] for trial in trials]
    objective = best.get("FinalHyperParameterTuningJobObjectiveMetric", {})
    return Search(
        metric=config["HyperParameterTuningJobObjective"]["MetricName"],
        most=config["ResourceLimits"].get("MaxNumberOfTrainingJobs"),
        completed=statuses.count("Completed"),
        failed=statuses.count("Failed"),
        running=tuple(trial["TrainingJobName"] for trial in trials if trial["TrainingJobStatus"] not in _ENDED),
        best=float(objective["Value"]) if objective else None,
        best_job=best.get("TrainingJobName", ""),
        failed_job=next((t["TrainingJobName"] for t in trials if t["TrainingJobStatus"] == "Failed"), ""),
        hyperparameters=dict(best.get("TunedHyperParameters", {})),
    )


def _trials(name: str) -> Iterator[dict[str, Any]]:
    """The training jobs of a tuning job, the newest first."""
    pages = sagemaker().get_paginator("list_training_jobs_for_hyper_parameter_tuning_job")
    newest = pages.paginate(
        HyperParameterTuningJobName=name,
        SortBy="CreationTime",
        SortOrder="Descending",
        PaginationConfig={"PageSize": PAGE},
    )
    for page in newest:
        yield from map(dict, page["TrainingJobSummaries"])


def _worth_reading(trials: list[dict[str, Any]], search: Search) -> list[dict[str, Any]]:
    def last(trial: dict[str, Any]) -> int:
        return 0 if trial["TrainingJobName"] == search.best_job else 1 if trial["TrainingJobStatus"] == "Failed" else 2

    return sorted(trials, key=last)[:MOST_READ]
