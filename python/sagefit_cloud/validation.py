"""Checks of ``CreateTrainingJob``: first the limits of botocore's own model of the API, then the rules between fields.

botocore itself enforces only required fields, types and minima; enums, patterns and maxima are the server's to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape
from moto.core.utils import get_service_model

KEEP_ALIVE_WITH_SPOT = "KeepAlivePeriodInSeconds is not supported when EnableManagedSpotTraining is set to true"
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float, str),
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
}


@cache
def input_shape(operation: str) -> Shape:
    """The request of an operation of SageMaker, as botocore models it."""
    shape: Shape = get_service_model("sagemaker").operation_model(operation).input_shape
    return shape


def problems_of(operation: str, request: dict[str, Any]) -> list[str]:
    """What is wrong with single fields of a request, in AWS's words."""
    return list(_check(input_shape(operation), request, ""))


def _check(shape: Shape, value: Any, path: str) -> Iterator[str]:
    if not _fits(value, _TYPES.get(shape.type_name, (object,))):
        yield f"Value at '{path}' failed to satisfy constraint: Member must be a {shape.type_name}"
        return
    yield from _check_limits(shape, value, path)
    if isinstance(shape, StructureShape):
        yield from _check_structure(shape, value, path)
    elif isinstance(shape, ListShape):
        for index, item in enumerate(value):
            yield from _check(shape.member, item, f"{path}.{index + 1}.member")
    elif isinstance(shape, MapShape):
        for key, item in value.items():
            yield from _check(shape.key, key, f"{path}.key")
            yield from _check(shape.value, item, f"{path}.{key}")


def _fits(value: Any, expected: tuple[type, ...]) -> bool:
    if isinstance(value, bool):  # which Python takes for an int
        return bool in expected or object in expected
    return isinstance(value, expected)


def _check_structure(shape: StructureShape, value: dict[str, Any], path: str) -> Iterator[str]:
    for name in shape.required_members:
        if value.get(name) is None:
            where = _join(path, name)
            yield f"Value null at '{where}' failed to satisfy constraint: Member must not be null"
    for name, item in value.items():
        member = shape.members.get(name)
        if member is None:
            yield f"Value at '{_join(path, name)}' failed to satisfy constraint: there is no member of that name"
        elif item is not None:
            yield from _check(member, item, _join(path, name))


def _check_limits(shape: Shape, value: Any, path: str) -> Iterator[str]:
    limits: dict[str, Any] = shape.metadata
    sized = isinstance(value, (str, list, dict))
    size = len(value) if sized else value
    noun = "length" if sized else "value"
    shown = "" if isinstance(value, (list, dict)) else f" '{value}'"
    start = f"Value{shown} at '{path}' failed to satisfy constraint: Member must"
    if "min" in limits and size < limits["min"]:
        yield f"{start} have {noun} greater than or equal to {limits['min']}"
    if "max" in limits and size > limits["max"]:
        yield f"{start} have {noun} less than or equal to {limits['max']}"
    if limits.get("enum") and value not in limits["enum"]:
        yield f"{start} satisfy enum value set: [{', '.join(limits['enum'])}]"
    pattern = limits.get("pattern")
    if pattern and isinstance(value, str) and not _pattern(pattern).fullmatch(value):
        yield f"{start} satisfy regular expression pattern: {pattern}"


@cache
def _pattern(java: str) -> re.Pattern[str]:
    """A pattern of the API model. Python spells Unicode classes differently."""
    text = java.replace(r"\p{L}", r"\w").replace(r"\p{Z}", r"\s").replace(r"\p{N}", r"\d")
    return re.compile(re.sub(r"\\[pP]\{[A-Za-z]+\}", r"\\w", text))


def _join(path: str, member: str) -> str:
    name = member[0].lower() + member[1:]
    return f"{path}.{name}" if path else name


def conflicts_of(request: dict[str, Any]) -> Iterator[str]:
    """What is wrong between the fields of a ``CreateTrainingJob`` request. One message a rule."""
    for name in ("AlgorithmSpecification", "ResourceConfig", "StoppingCondition"):
        if name not in request:
            yield f"{name} is required for a training job that is not serverless"
            return
    yield from _algorithm(request)
    yield from _resources(request)
    yield from _spot(request)
    yield from _channels(request)
    keys = [tag["Key"] for tag in request.get("Tags", [])]
    if len(keys) != len(set(keys)):
        yield "Duplicate tag keys found. Please specify unique tag keys"


def _algorithm(request: dict[str, Any]) -> Iterator[str]:
    algorithm = request["AlgorithmSpecification"]
    if ("TrainingImage" in algorithm) == ("AlgorithmName" in algorithm):
        yield "You must specify exactly one of TrainingImage and AlgorithmName in AlgorithmSpecification"
    for metric in algorithm.get("MetricDefinitions", []):
        try:
            re.compile(metric["Regex"])
        except re.error as error:
            yield f"Invalid regex in MetricDefinitions for {metric['Name']}: {error}"


def _resources(request: dict[str, Any]) -> Iterator[str]:
    resources = request["ResourceConfig"]
    if "InstanceGroups" in resources:
        if "InstanceType" in resources or "InstanceCount" in resources:
            yield "InstanceGroups cannot be used together with InstanceType or InstanceCount in ResourceConfig"
        if resources.get("KeepAlivePeriodInSeconds"):
            yield "KeepAlivePeriodInSeconds is not supported with InstanceGroups"
        names = [group["InstanceGroupName"] for group in resources["InstanceGroups"]]
        if len(names) != len(set(names)):
            yield "Instance group names must be unique in ResourceConfig"
    elif "InstanceType" not in resources or "InstanceCount" not in resources:
        yield "InstanceType and InstanceCount are required in ResourceConfig"


def _spot(request: dict[str, Any]) -> Iterator[str]:
    spot = request.get("EnableManagedSpotTraining", False)
    limits = request["StoppingCondition"]
    longest = limits.get("MaxWaitTimeInSeconds")
    if not spot:
        if longest is not None:
            yield "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"
        return
    if longest is None:
        yield "MaxWaitTimeInSeconds is required when EnableManagedSpotTraining is set to true"
    elif longest < limits.get("MaxRuntimeInSeconds", 86400):
        yield "Invalid MaxWaitTimeInSeconds. It must be equal to or greater than MaxRuntimeInSeconds"
    if request["ResourceConfig"].get("KeepAlivePeriodInSeconds"):
        yield KEEP_ALIVE_WITH_SPOT


def _channels(request: dict[str, Any]) -> Iterator[str]:
    channels = request.get("InputDataConfig", [])
    groups = {group["InstanceGroupName"] for group in request["ResourceConfig"].get("InstanceGroups", [])}
    names = [channel["ChannelName"] for channel in channels]
    if len(names) != len(set(names)):
        yield "Channel names in InputDataConfig must be unique"
    for channel in channels:
        source, name = channel["DataSource"], channel["ChannelName"]
        mode = channel.get("InputMode") or request["AlgorithmSpecification"]["TrainingInputMode"]
        if ("S3DataSource" in source) == ("FileSystemDataSource" in source):
            yield f"Channel '{name}' must have exactly one of S3DataSource and FileSystemDataSource"
            continue
        s3 = source.get("S3DataSource")
        unknown = [group for group in (s3 or {}).get("InstanceGroupNames", []) if group not in groups]
        if unknown:
            yield f"Channel '{name}' names instance groups that are not in InstanceGroups: {', '.join(unknown)}"
        if s3 and s3["S3DataType"] == "AugmentedManifestFile" and mode != "Pipe":
            yield f"Channel '{name}': AugmentedManifestFile is only supported with the Pipe input mode"
        if s3 and mode == "FastFile" and s3["S3DataType"] != "S3Prefix":
            yield f"Channel '{name}': the FastFile input mode is only supported with S3Prefix"
        if not s3 and mode != "File":
            yield f"Channel '{name}': a file system is only supported with the File input mode"
        if not s3 and "VpcConfig" not in request:
            yield f"Channel '{name}': a file system needs a VpcConfig"
        if mode != "Pipe" and (channel.get("CompressionType") or "None") != "None":
            yield f"Channel '{name}': CompressionType Gzip is only supported with the Pipe input mode"
        if mode != "Pipe" and (channel.get("RecordWrapperType") or "None") != "None":
            yield f"Channel '{name}': RecordWrapperType RecordIO is only supported with the Pipe input mode"
    with_groups = {
        channel["ChannelName"]
        for channel in channels
        if channel["DataSource"].get("S3DataSource", {}).get("InstanceGroupNames")
    }
    if with_groups and with_groups != set(names):  # AWS's own words: aws/sagemaker-python-sdk, issue 5225
        without = ", ".join(name for name in names if name not in with_groups)
        named = ", ".join(sorted(with_groups))
        yield f"Some channels have assigned instance groups: [{named}] while others not: [{without}]"
