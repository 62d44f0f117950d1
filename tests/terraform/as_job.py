"""The variables of ``modules/training-job`` as the job file that renders to them: the way back of the render.

Raises KeyError for a variable or field that no job file has. Local paths are those of the module's tests, which are
copied beside the job file.
"""

from __future__ import annotations

from typing import Any

#: Fields with another name in the job file.
RESOURCES = {"poll_seconds": "poll_interval", "max_keep_alive_seconds": "max_keep_alive"}
SCHEDULE = {"expression": "expression", "timezone": "timezone"}
#: Variables that say nothing of the job itself: a job file cannot ask for them.
NOT_OF_A_JOB = {"platform"}


def as_job(variables: dict[str, Any]) -> dict[str, Any]:
    """The job file, before it is written down."""
    given = {name: value for name, value in variables.items() if value is not None and name not in NOT_OF_A_JOB}
    job: dict[str, Any] = {"platform": (variables.get("platform") or {}).get("name", "dev")}
    for name, value in given.items():
        job |= _VARIABLES[name](value)
    return job


def _same(name: str) -> Any:
    return lambda value: {name: value}


def _channels(value: dict[str, Any]) -> dict[str, Any]:
    return {"inputs": {name: _source(channel) for name, channel in value.items()}}


def _source(given: dict[str, Any]) -> dict[str, Any]:
    fields = dict(given)
    if fields.get("s3_uri") is not None and fields.get("local_path") is not None:
        raise KeyError("s3_uri and local_path")
    for place in ("s3_uri", "local_path"):
        if fields.get(place) is not None:
            fields["uri"] = fields.pop(place)
    return fields


def _resources(value: dict[str, Any]) -> dict[str, Any]:
    return {"resources": {RESOURCES.get(name, name): field for name, field in value.items()}}


def _attempts(value: list[dict[str, Any]]) -> dict[str, Any]:
    """Groups are the job's in its file, and the same for each attempt."""
    job: dict[str, Any] = {"attempts": [dict(attempt) for attempt in value]}
    for attempt in job["attempts"]:
        attempt.pop("memory_percent", None)
        if "instance_groups" in attempt:
            job["resources"] = {"instance_groups": attempt.pop("instance_groups")}
    return job


def _step(value: dict[str, Any]) -> dict[str, Any]:
    step = dict(value)
    names = {"instance_type": "instance_type", "instance_count": "instance_count", "volume_size_gb": "volume_size_gb"}
    names["max_runtime_seconds"] = "max_runtime"
    resources = {new: step.pop(old) for old, new in names.items() if old in step}
    inputs = {name: _source(given) for name, given in (step.pop("inputs", None) or {}).items()}
    return step | {"resources": resources} | ({"inputs": inputs} if inputs else {})


def _tuning(value: dict[str, Any]) -> dict[str, Any]:
    tuning = dict(value)
    if "max_runtime_seconds" in tuning:
        tuning["max_runtime"] = tuning.pop("max_runtime_seconds")
    tuning["ranges"] = {name: _range(given) for name, given in tuning.get("ranges", {}).items()}
    return {"tuning": tuning}


def _range(given: dict[str, Any]) -> Any:
    return (
        given.get("values", [])
        if given.get("type") == "Categorical"
        else {k: v for k, v in given.items() if k != "type"}
    )


_VARIABLES: dict[str, Any] = {
    **{
        name: _same(name) for name in ("name", "description", "code", "image", "hyperparameters", "environment", "tags")
    },
    "schedule": lambda value: {"schedule": {SCHEDULE[name]: field for name, field in value.items()}},
    "metric_definitions": _same("metrics"),
    "channels": _channels,
    "resources": _resources,
    "attempts": _attempts,
    "processing": lambda steps: {"processing": [_step(step) for step in steps]},
    "tuning": _tuning,
}
