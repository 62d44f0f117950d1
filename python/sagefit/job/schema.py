"""The job file as JSON Schema, for editors and for checks outside Python (``docs/job.schema.json``)."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sagefit.job.model import Job

_DURATION = {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"^(\s*\d+\s*[smhd]\s*)+$"}]}


class _Schema(GenerateJsonSchema):
    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:  # noqa: ARG002
        """The only converted values are durations, which may be text."""
        return _DURATION


def schema() -> dict[str, Any]:
    """The JSON Schema of a job file. ``name`` is optional there: it defaults to the file's name."""
    document = TypeAdapter(Job).json_schema(schema_generator=_Schema)
    document["required"] = [name for name in document["required"] if name != "name"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": "Sagefit job file"}
