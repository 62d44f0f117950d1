"""Reads a job back from the definition of its state machine, which modules/training-job has written.

The result uses the words of a job file, which a reviewer already knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sagefit.catalog.hardware import groups_of
from sagefit.documents import parsed
from sagefit.job.model import OLDER_NAMES
from sagefit.machine import processing, tuning
from sagefit.planning import PlannedAttempt
from sagefit.secret_names import is_secret_name

_COMMENT = re.compile(r"^Sagefit job (?P<name>[^:\s]+)(?:: (?P<description>.*))?$", re.DOTALL)
_SUBMIT = ": submit"
_IMAGE = re.compile(r"^\d+\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.")
_DIGEST = re.compile(r"/jobs/[^/]+/(?P<what>code|launcher|inputs/[^/]+)/(?P<digest>[0-9a-f]{16})/$")
_TASKS = ("createTrainingJob", "describeTrainingJob", "updateTrainingJob", *tuning.TASKS, *processing.TASKS)
_KINDS = (": submit", ": refused", ": refusal", ": lost", ": wait", ": describe", ": judge", ": ended", ": next")

HIDDEN = "(not shown)"

OWN_VARIABLE = "SAGEFIT_ATTEMPT"
"""What modules/training-job adds to the environment of each attempt."""


@dataclass(frozen=True)
class Definition:
    """A job as its state machine runs it. ``words`` are fields of a job file with their values, in its order.

    ``shared`` is the rest of the machine, which is the same for all jobs of one version of Sagefit. ``strange`` lists
    the states that Sagefit does not write.
    """

    name: str
    words: dict[str, Any]
    attempts: list[PlannedAttempt]
    steps: list[PlannedAttempt]
    hyperparameters: dict[str, dict[str, str]]
    role_arn: str
    region: str | None
    shared: dict[str, Any]
    strange: tuple[str, ...]
    timeout_seconds: int | None


def is_ours(text: Any) -> bool:
    """Whether this is the definition of one of Sagefit's jobs."""
    machine = parsed(text)
    return isinstance(machine, dict) and bool(_COMMENT.match(str(machine.get("Comment"))))


def read_definition(text: Any) -> Definition | None:
    """The job in a definition; None where it is not one of Sagefit's or has lost its form."""
    machine = parsed(text)
    comment = _COMMENT.match(str(machine.get("Comment"))) if isinstance(machine, dict) else None
    states = machine.get("States") if isinstance(machine, dict) else None
    if comment is None or not isinstance(states, dict):
        return None
    try:
        return _read(machine, states, comment)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):  # another form than Sagefit's
        return None


def _read(machine: dict[str, Any], states: dict[str, Any], comment: re.Match[str]) -> Definition | None:
    listed = [choice["StringEquals"] for choice in states["again"]["Choices"]]
    order = [name for name in listed if not name.startswith(processing.LABEL)]
    prepared = {name: states[name + _SUBMIT]["Parameters"] for name in listed if name not in order}
    asked = {name: states[name + _SUBMIT]["Parameters"] for name in order}
    requests = {name: tuning.training_request(parameters) for name, parameters in asked.items()}
    if not requests or set(listed) != {state.removesuffix(_SUBMIT) for state in states if state.endswith(_SUBMIT)}:
        return None
    first = requests[order[0]]
    search = tuning.search(asked[order[0]])
    merged = {name: dict(request.get("HyperParameters") or {}) for name, request in requests.items()}
    shared_hyper = dict(set(merged[order[0]].items()).intersection(*(each.items() for each in merged.values())))
    environments = {name: dict(request.get("Environment") or {}) for name, request in requests.items()}
    shared_env = dict(set(environments[order[0]].items()).intersection(*(e.items() for e in environments.values())))
    attempts = [
        replace(_attempt(name, states, requests[name], merged[name], shared_hyper), tuning=search) for name in order
    ]
    if any(target not in order for attempt in attempts for target in attempt.next.values()):
        return None
    words: dict[str, Any] = {"name": comment["name"], "description": comment["description"] or ""}
    words |= dict(_shared_words(first, shared_hyper, shared_env))
    of_steps = dict(processing.words(prepared, first))
    words |= {word: Secret(value) if ".environment." in word else value for word, value in of_steps.items()}
    words |= dict(tuning.words(search))
    for attempt in attempts:
        words |= dict(_attempt_words(attempt, environments[attempt.name], shared_env))
        own = {*_different(requests[attempt.name], first), *tuning.different(asked, attempt.name)}
        if differs := sorted(own - (tuning.MAY_DIFFER if search else set())):
            words[f"attempts.{attempt.name}.(request)"] = f"differs from the first attempt in {', '.join(differs)}"
    image = _IMAGE.match(str(words.get("image")))
    return Definition(
        name=comment["name"],
        words=words,
        attempts=attempts,
        steps=processing.steps(prepared),
        hyperparameters=merged,
        role_arn=str(first.get("RoleArn")),
        region=image["region"] if image else None,
        shared={name: state for name, state in states.items() if not name.endswith(_SUBMIT)},
        strange=tuple(sorted(_strange(states, order, list(prepared)))),
        timeout_seconds=machine.get("TimeoutSeconds") if isinstance(machine.get("TimeoutSeconds"), int) else None,
    )


_PER_ATTEMPT = {
    "HyperParameters", "Environment", "ResourceConfig", "StoppingCondition", "EnableManagedSpotTraining",
    "TrainingJobName.$", "Tags", "AlgorithmSpecification",
}  # fmt: skip


def _different(request: dict[str, Any], first: dict[str, Any]) -> Iterator[str]:
    """Parts that differ although Sagefit writes them alike for all attempts."""
    for key in {*request, *first} - _PER_ATTEMPT:
        if request.get(key) != first.get(key):
            yield key
    ours, others = (dict(each.get("AlgorithmSpecification") or {}) for each in (request, first))
    if {**ours, "TrainingImage": 0} != {**others, "TrainingImage": 0}:
        yield "AlgorithmSpecification"


def _strange(states: dict[str, Any], order: list[str], steps: list[str]) -> Iterator[str]:
    for name, state in states.items():
        attempt, colon, rest = name.partition(": ")
        known = attempt in order and (f": {rest}" in _KINDS or rest.startswith("release for "))
        known = known or (attempt in steps and rest in processing.KINDS)
        shared = name in _SHARED or (colon and attempt in ("class", "repeat"))
        task = state.get("Type") == "Task" and not str(state.get("Resource")).endswith(
            tuple(f":aws-sdk:sagemaker:{call}" for call in _TASKS)
        )
        if task or not (known or shared):
            yield name


_SHARED = (
    "named", "misnamed", "begin", "completed", "done", "refusal", "refusal with cause", "refusal without cause",
    "classify refusal", "stopped", "stopped while pending", "classify", "no reason", "patience", "note", "settle",
    "pause", "failed", "again", "route", *tuning.STATES, *processing.STATES,
)  # fmt: skip


def _attempt(
    name: str, states: dict[str, Any], request: dict[str, Any], merged: dict[str, str], shared: dict[str, str]
) -> PlannedAttempt:
    submit = states[name + _SUBMIT]
    resources, stopping = request["ResourceConfig"], request["StoppingCondition"]
    groups = groups_of(resources)
    return PlannedAttempt(
        name=name,
        reason=str(submit.get("Comment", "")).partition(": ")[2],
        instance_type="" if groups else str(resources["InstanceType"]),
        instance_count=sum(g.instance_count for g in groups) or int(resources["InstanceCount"]),
        spot=bool(request.get("EnableManagedSpotTraining")),
        hyperparameters={key: value for key, value in merged.items() if shared.get(key) != value},
        environment={},
        volume_size_gb=int(resources.get("VolumeSizeInGB") or 0),
        keep_alive_seconds=int(resources.get("KeepAlivePeriodInSeconds") or 0),
        max_runtime_seconds=int(stopping["MaxRuntimeInSeconds"]),
        max_wait_seconds=stopping.get("MaxWaitTimeInSeconds"),
        max_pending_seconds=stopping.get("MaxPendingTimeInSeconds"),
        next={
            choice["StringEquals"]: re.sub(r"^.*: release for ", "", choice["Next"]).removesuffix(_SUBMIT)
            for choice in states.get(f"{name}: next", {}).get("Choices", [])
            if choice["Variable"] == "$.class"
        },
        instance_groups=groups,
    )


def _shared_words(request: dict[str, Any], hyper: dict[str, str], env: dict[str, str]) -> Iterator[tuple[str, Any]]:
    algorithm = request.get("AlgorithmSpecification") or {}
    yield "image", algorithm.get("TrainingImage") or algorithm.get("AlgorithmName")
    arguments = algorithm.get("ContainerArguments") or []
    if "--entry-point" in arguments:
        yield "code.entry_point", arguments[arguments.index("--entry-point") + 1]
        yield "code.arguments", arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    elif algorithm.get("ContainerEntrypoint") or arguments:
        yield "code.arguments", [*(algorithm.get("ContainerEntrypoint") or []), *arguments]
    yield from _inputs(request.get("InputDataConfig") or [])
    for key in sorted(hyper):
        yield f"hyperparameters.{key}", HIDDEN if is_secret_name(key) else hyper[key]
    for key in sorted(env):
        yield f"environment.{key}", Secret(env[key])
    yield from _resources(request, algorithm)
    for metric in algorithm.get("MetricDefinitions") or []:
        if not str(metric["Name"]).startswith("sagefit:"):
            yield f"metrics.{metric['Name']}", metric["Regex"]
    for tag in request.get("Tags") or []:
        if not str(tag["Key"]).startswith("sagefit:"):
            yield f"tags.{tag['Key']}", tag["Value"]


class Secret(str):
    """The value of an environment variable: compared, never shown."""

    __slots__ = ()


def _inputs(channels: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    for channel in channels:
        name, source = channel["ChannelName"], channel["DataSource"]
        s3, files = source.get("S3DataSource") or {}, source.get("FileSystemDataSource") or {}
        uri = str(s3.get("S3Uri") or s3.get("S3Uri.$") or "")
        found = _DIGEST.search(uri)
        if found and name in ("code", "sagefit"):
            yield ("code.digest" if name == "code" else "launcher"), found["digest"]
            continue
        yield (
            f"inputs.{name}.uri",
            f"local data, digest {found['digest']}" if found else processing.origin(uri) or s3.get("S3Uri"),
        )
        if files:
            yield f"inputs.{name}.file_system", files
        for key, word in (("S3DataDistributionType", "distribution"), ("S3DataType", "s3_data_type")):
            yield f"inputs.{name}.{word}", s3.get(key)
        if s3.get("InstanceGroupNames"):
            yield f"inputs.{name}.instance_groups", s3["InstanceGroupNames"]
        for key, word in (("InputMode", "mode"), ("ContentType", "content_type"), ("CompressionType", "compression")):
            yield f"inputs.{name}.{word}", channel.get(key)


def _resources(request: dict[str, Any], algorithm: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    output, vpc = request.get("OutputDataConfig") or {}, request.get("VpcConfig") or {}
    checkpoints = request.get("CheckpointConfig")
    uri = str((checkpoints or {}).get("S3Uri.$") or (checkpoints or {}).get("S3Uri") or "")
    place = re.search(r"s3://[^/{}']+", uri)
    yield "resources.checkpoints", bool(checkpoints)
    yield "resources.checkpoint_bucket", place[0] if place else None
    yield "resources.checkpoint_local_path", (checkpoints or {}).get("LocalPath")
    yield "resources.input_mode", algorithm.get("TrainingInputMode")
    yield "resources.network_isolation", bool(request.get("EnableNetworkIsolation"))
    yield "resources.encrypt_inter_container_traffic", bool(request.get("EnableInterContainerTrafficEncryption"))
    yield "resources.subnet_ids", vpc.get("Subnets")
    yield "resources.security_group_ids", vpc.get("SecurityGroupIds")
    yield "resources.volume_kms_key_arn", request["ResourceConfig"].get("VolumeKmsKeyId")
    yield "resources.output_kms_key_arn", output.get("KmsKeyId")
    yield "resources.output_s3_uri", output.get("S3OutputPath")
    yield "resources.output_compression", output.get("CompressionType") or "GZIP"
    yield "resources.retry_attempts", (request.get("RetryStrategy") or {}).get("MaximumRetryAttempts")
    yield "resources.remote_debug", bool((request.get("RemoteDebugConfig") or {}).get("EnableRemoteDebug"))
    yield "resources.profiler", not (request.get("ProfilerConfig") or {}).get("DisableProfiler")
    yield "role_arn", request.get("RoleArn")


def _attempt_words(
    attempt: PlannedAttempt, environment: dict[str, str], shared: dict[str, str]
) -> Iterator[tuple[str, Any]]:
    prefix = f"attempts.{attempt.name}"
    fields = attempt.for_terraform()
    for name in (
        "reason", "instance_type", "instance_count", "spot", "volume_size_gb", "keep_alive_seconds",
        "max_runtime_seconds", "max_wait_seconds", "max_pending_seconds",
    ):  # fmt: skip
        if name in fields:
            yield f"{prefix}.{OLDER_NAMES.get(name, name)}", fields[name]
    for group in attempt.instance_groups:
        yield f"{prefix}.instance_groups.{group.name}", str(group)
    for key, value in sorted(attempt.hyperparameters.items()):
        yield f"{prefix}.hyperparameters.{key}", HIDDEN if is_secret_name(key) else value
    for key, value in sorted(environment.items()):
        if shared.get(key) != value and key != "SAGEFIT_ATTEMPT":
            yield f"{prefix}.environment.{key}", Secret(value)
    for kind, target in attempt.next.items():
        yield f"{prefix}.next.{kind}", target
