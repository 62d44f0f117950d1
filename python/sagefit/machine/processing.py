"""Processing steps in a definition: what they run on, and their requests in the words of a job file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sagefit.job.processing_model import StepResources
from sagefit.planning import PlannedAttempt, step_as_attempt

LABEL = "processing "
TASKS = ("createProcessingJob", "describeProcessingJob")
KINDS = ("submit", "refused", "refusal", "lost", "wait", "describe", "judge", "completed", "ended")
STATES = ("processing: failed", "processing: reason alone", "processing: reason and message")
_DIGEST = re.compile(r"/inputs/[^/]+/[^/]+/(?P<digest>[0-9a-f]{16})/$")
_OUTPUT = re.compile(r"/processing/(?P<step>[^/]+)/(?P<output>[^/']+)/?'")
_STARTERS = ("python3", "smspark-submit")


def steps(requests: dict[str, dict[str, Any]]) -> list[PlannedAttempt]:
    """The steps, in order; ``requests`` by the labels of their states."""
    return [step_as_attempt(label.removeprefix(LABEL), _resources(request)) for label, request in requests.items()]


def words(requests: dict[str, dict[str, Any]], training: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The steps as fields of a job file. ``training``, the first attempt's request, is protected as they are."""
    for label, request in requests.items():
        prefix = f"processing.{label.removeprefix(LABEL)}"
        for word, value in _of_step(request):
            yield f"{prefix}.{word}", value
        if differs := sorted(_less_protected(request, training)):
            yield f"{prefix}.(request)", f"differs from the training jobs in {', '.join(differs)}"


def origin(uri: str) -> str | None:
    """``STEP/OUTPUT`` of a location that is a step's output; None of any other."""
    found = _OUTPUT.search(uri)
    return f"from {found['step']}/{found['output']}" if found else None


def _resources(request: dict[str, Any]) -> StepResources:
    cluster = request["ProcessingResources"]["ClusterConfig"]
    return StepResources(
        instance_type=cluster["InstanceType"],
        instance_count=cluster["InstanceCount"],
        volume_size_gb=cluster["VolumeSizeInGB"],
        max_runtime=request["StoppingCondition"]["MaxRuntimeInSeconds"],
    )


def _of_step(request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    application = request["AppSpecification"]
    yield "image", application["ImageUri"]
    command = application.get("ContainerEntrypoint") or []
    if command and command[0] in _STARTERS:
        yield "code.entry_point", command[-1].rpartition("/input/code/")[2]
    elif command:
        yield "code.entry_point", command
    yield "code.arguments", application.get("ContainerArguments") or []
    for given in request.get("ProcessingInputs") or []:
        name, source = given["InputName"], given["S3Input"]
        uri = source.get("S3Uri") or source.get("S3Uri.$") or ""
        found = _DIGEST.search(uri)
        if name == "code" and found:
            yield "code.digest", found["digest"]
            continue
        yield f"inputs.{name}.uri", f"local data, digest {found['digest']}" if found else origin(uri) or uri
        yield f"inputs.{name}.distribution", source.get("S3DataDistributionType")
        yield f"inputs.{name}.s3_data_type", source.get("S3DataType")
    outputs = (request.get("ProcessingOutputConfig") or {}).get("Outputs") or []
    yield "outputs", {output["OutputName"]: output["S3Output"].get("S3Uri.$") for output in outputs}
    for name, value in sorted((request.get("Environment") or {}).items()):
        yield f"environment.{name}", value
    resources = _resources(request)
    for name in ("instance_type", "instance_count", "volume_size_gb", "max_runtime"):
        yield f"resources.{name}", getattr(resources, name)
    yield "resources.volume_kms_key_arn", request["ProcessingResources"]["ClusterConfig"].get("VolumeKmsKeyId")


def _less_protected(request: dict[str, Any], training: dict[str, Any]) -> Iterator[str]:
    """Parts that differ although Sagefit writes them alike for steps and training jobs."""
    network = request.get("NetworkConfig") or {}
    for field in ("EnableNetworkIsolation", "EnableInterContainerTrafficEncryption", "VpcConfig"):
        if network.get(field) != training.get(field):
            yield field
    if request.get("RoleArn") != training.get("RoleArn"):
        yield "RoleArn"
    keys = [(part.get(field) or {}).get("KmsKeyId") for part, field in (
        (request, "ProcessingOutputConfig"), (training, "OutputDataConfig"),
    )]  # fmt: skip
    if keys[0] != keys[1]:
        yield "KmsKeyId"
