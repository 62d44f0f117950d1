"""Tuning jobs in a definition: their search in the words of a job file, and the training jobs they make."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sagefit.job.tuning import Objective, Range, Tuning

TASKS = (
    "createHyperParameterTuningJob", "describeHyperParameterTuningJob", "listTrainingJobsForHyperParameterTuningJob",
)  # fmt: skip
STATES = (
    "best", "trials", "trial", "autopsy", "no trial", "tuning failed", "no objective", "unread", "tuning stopped",
)  # fmt: skip
MAY_DIFFER = {"CheckpointConfig"}
"""Only trials that spot capacity or a retry may bring back keep checkpoints."""
_STARTS_LAUNCHER = ("sagemaker_program", "sagemaker_submit_directory", "sagemaker_sagefit_arguments")


def training_request(request: dict[str, Any]) -> dict[str, Any]:
    """The request for a training job that a request for a tuning job holds; any other request is returned as it is.

    The launcher's arguments stand where a training job has them.
    """
    definition = request.get("TrainingJobDefinition")
    if definition is None:
        return request
    static = dict(definition.get("StaticHyperParameters") or {})
    algorithm = dict(definition["AlgorithmSpecification"])
    if arguments := static.get("sagemaker_sagefit_arguments"):
        algorithm["ContainerArguments"] = json.loads(arguments)
    return {
        **{key: value for key, value in definition.items() if key != "StaticHyperParameters"},
        "AlgorithmSpecification": algorithm,
        "HyperParameters": {key: value for key, value in static.items() if key not in _STARTS_LAUNCHER},
        "Tags": request.get("Tags") or [],
    }


def search(request: dict[str, Any]) -> Tuning | None:
    """What a request for a tuning job searches for; None for any other request. Raises ValueError for another form."""
    config = request.get("HyperParameterTuningJobConfig")
    if config is None:
        return None
    limits, objective = config["ResourceLimits"], config["HyperParameterTuningJobObjective"]
    return Tuning(
        strategy=config["Strategy"],
        objective=Objective(metric=objective["MetricName"], type=objective["Type"]),
        max_jobs=limits.get("MaxNumberOfTrainingJobs"),
        max_parallel_jobs=limits["MaxParallelTrainingJobs"],
        max_runtime=limits.get("MaxRuntimeInSeconds"),
        early_stopping=config.get("TrainingJobEarlyStoppingType") == "Auto",
        seed=config.get("RandomSeed"),
        ranges=dict(_ranges(config["ParameterRanges"])),
    )


def different(asked: dict[str, dict[str, Any]], attempt: str) -> Iterator[str]:
    """The search of an attempt when it differs from that of the first attempt."""
    field = "HyperParameterTuningJobConfig"
    if asked[attempt].get(field) != next(iter(asked.values())).get(field):
        yield field


def _ranges(ranges: dict[str, Any]) -> Iterator[tuple[str, Range | list[Any]]]:
    for kind, number in (("IntegerParameterRanges", int), ("ContinuousParameterRanges", float)):
        for item in ranges.get(kind, []):
            ends = number(item["MinValue"]), number(item["MaxValue"])
            yield item["Name"], Range(min=ends[0], max=ends[1], scaling=item.get("ScalingType", "Auto"))
    for item in ranges.get("CategoricalParameterRanges", []):
        yield item["Name"], list(item["Values"])


def words(tuning: Tuning | None) -> Iterator[tuple[str, Any]]:
    """The search as fields of a job file."""
    if tuning is None:
        return
    yield "tuning.strategy", tuning.strategy
    yield "tuning.objective", f"{tuning.objective.type} {tuning.objective.metric}"
    yield "tuning.max_jobs", tuning.jobs
    for field in ("max_parallel_jobs", "max_runtime", "early_stopping", "seed"):
        if (value := getattr(tuning, field)) is not None:
            yield f"tuning.{field}", value
    for name, found in sorted(tuning.ranges.items()):
        said = ", ".join(tuning.values(name))
        if isinstance(found, Range):
            said = f"{found.min} to {found.max}, {found.scaling}"
        yield f"tuning.ranges.{name}", said
