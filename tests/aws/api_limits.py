"""The limits that AWS writes into its API models: lengths, patterns, numbers, allowed words, required fields.

The models are those of botocore, which AWS generates and publishes. botocore itself checks types and lower limits only,
so the embedded cloud's reader judges, which judges every request to it.
"""

from __future__ import annotations

from typing import Any

from botocore.model import ServiceModel, StructureShape
from moto.core.utils import get_service_model

from sagefit_cloud import validation

_LEFT_OUT = "Member must not be null"


def model(service: str) -> ServiceModel:
    """The model of a service."""
    return get_service_model(service)


def members(service: str, shape: str) -> set[str]:
    """The fields of a structure."""
    found = model(service).shape_for(shape)
    assert isinstance(found, StructureShape)
    return set(found.members)


def beyond(service: str, shape: str, value: Any, *, is_whole: bool = True) -> list[str]:
    """What of a value its model does not allow. Fields may be absent where the value is not whole."""
    problems = validation.problems_with(model(service).shape_for(shape), value)
    return [problem for problem in problems if is_whole or _LEFT_OUT not in problem]
