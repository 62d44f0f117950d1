"""The job file as JSON Schema, for editors and for checks outside Python (``docs/job.schema.json``)."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sagefit.job.model import OLDER_NAMES, Job
from sagefit.job.values import DURATION_TEXT, NUMBER_PATTERN, from_duration, from_exponent

_TEXTS: dict[Any, str] = {from_duration: DURATION_TEXT, from_exponent: f"^{NUMBER_PATTERN}$"}
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum"}


class _Schema(GenerateJsonSchema):
    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """The only converted values are durations and numbers with an exponent, which may be text."""
        number = self.generate_inner(schema["schema"])
        pattern = _TEXTS.get(schema["function"]["function"])
        return {"anyOf": [number, {"type": "string", "pattern": pattern}]} if pattern else number


def schema() -> dict[str, Any]:
    """The JSON Schema of a job file. ``name`` is optional there: it defaults to the file's name."""
    document = TypeAdapter(Job).json_schema(schema_generator=_Schema)
    _put_limits(document)
    attempt = document["$defs"]["Attempt"]["properties"]
    attempt |= {older: {**attempt[newer], "deprecated": True} for older, newer in OLDER_NAMES.items()}
    document["required"] = [name for name in document["required"] if name != "name"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": "Sagefit job file"}


def _put_limits(node: Any) -> None:
    """Move limits to the number: for a value that may be text, pydantic puts them beside it, under its own names."""
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _put_limits(inner)
    if isinstance(node, dict) and "anyOf" in node:
        node["anyOf"][0] |= {word: node.pop(name) for name, word in _LIMITS.items() if name in node}
