"""What AWS refuses of a request to any service: first what botocore's model of the service says of each field, then
the rules between fields.

botocore itself enforces only required fields, types and minima; enums, patterns and maxima are the server's to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

import regex  # type: ignore[import-untyped]
from botocore.model import ListShape, MapShape, Shape, StructureShape
from moto.core.utils import get_service_model

from sagefit_cloud import rules, wire

# What services call the error, where it is not a ValidationException: "Common errors" and "Errors" in their references.
_CODES = {
    "cloudwatch": "ValidationError",
    "ecr": "InvalidParameterException",
    "iam": "ValidationError",
    "logs": "InvalidParameterException",
    "sns": "InvalidParameter",
    "sts": "ValidationError",
}
# Of S3, whose errors are other ones: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
_OF_S3 = {
    "createBucketConfiguration.locationConstraint": "InvalidLocationConstraint",
    "serverSideEncryption": "InvalidEncryptionAlgorithmError",
    "storageClass": "InvalidStorageClass",
}
_SHOWN = 256  # letters of a value
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float, str, datetime),
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
}


def refusal(service: str, operation: str, request: dict[str, Any], place: rules.Place) -> rules.Said | None:
    """The error that a request gets; None for one with nothing wrong."""
    name = wire.boto_name(service)
    code = _CODES.get(name, "ValidationException")
    if problems := problems_of(name, operation, request):
        count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected"
        return rules.Said(f"{count}: {'; '.join(problems)}", _code_of_s3(operation, problems) if name == "s3" else code)
    conflict = next(rules.conflicts_of(name, operation, request, place), None)
    return rules.Said(conflict, code) if isinstance(conflict, str) else conflict


def _code_of_s3(operation: str, problems: list[str]) -> str:
    """What S3 calls the first thing that is wrong with a request."""
    where = problems[0].split(" at '", 1)[1].partition("'")[0]
    shape = _input_shape("s3", operation)
    payload = shape.serialization.get("payload") if shape else None
    in_body = payload and where.partition(".")[0] == _join("", payload)
    return _OF_S3.get(where, "MalformedXML" if in_body else "InvalidArgument")


@cache
def _input_shape(service: str, operation: str) -> Shape | None:
    """The request of an operation, as botocore models it; None if it has no parameters."""
    shape: Shape | None = get_service_model(service).operation_model(operation).input_shape
    return shape


def problems_of(service: str, operation: str, request: dict[str, Any]) -> list[str]:
    """What is wrong with single fields of a request, in AWS's words."""
    shape = _input_shape(service, operation)
    return [] if shape is None else problems_with(shape, request)


def problems_with(shape: Shape, value: Any) -> list[str]:
    """What of a value the model of its shape does not allow, in AWS's words."""
    return list(_check(shape, value, ""))


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
    shown = "" if isinstance(value, (list, dict)) else f" '{str(value)[:_SHOWN]}'"
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
def _pattern(java: str) -> Any:
    """A pattern of a model. Those of Athena's names in SageMaker's are in no syntax but Java's: they match all."""
    try:
        return regex.compile(java)
    except regex.error:
        return regex.compile("(?s).*")


def _join(path: str, member: str) -> str:
    name = member[0].lower() + member[1:]
    return f"{path}.{name}" if path else name
