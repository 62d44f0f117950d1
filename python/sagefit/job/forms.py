"""Fields that may have several forms, such as a text or a mapping: which form a value has, before it is checked.

Only the rules of a value's own form check it. So no error message is about a form that the user did not write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BeforeValidator, Discriminator, Tag
from pydantic_core import PydanticCustomError

WRONG_FORM = "wrong_form"
"""The error for a value whose form the field does not allow; its message lists the allowed forms."""

WRONG_FAMILY = "wrong_family"

TEXT, LIST, MAPPING, NUMBER = Tag("<text>"), Tag("<list>"), Tag("<mapping>"), Tag("<number>")


def either(forms: str) -> Discriminator:
    """Chooses the tagged member of a union by the form of the value. ``forms`` names them for people."""
    return Discriminator(_form, custom_error_type=WRONG_FORM, custom_error_message=f"must be {forms}")


def one_of(forms: str, *types: type) -> BeforeValidator:
    """For unions of plain values: refuses a value of any other type than ``types``; a boolean is no whole number."""

    def check(value: Any) -> Any:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise PydanticCustomError(WRONG_FORM, f"must be {forms}")
        return value

    return BeforeValidator(check)


def of_family() -> Discriminator:
    """Chooses the member tagged ``<NAME>`` by the value's ``family``."""
    return Discriminator(_family, custom_error_type=WRONG_FAMILY, custom_error_message="is of no known family")


def is_tag(part: object) -> bool:
    """Whether a part of pydantic's location names a form, not a field of the file."""
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def _form(value: Any) -> str | None:
    if isinstance(value, str):
        return TEXT.tag
    if isinstance(value, list):
        return LIST.tag
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NUMBER.tag
    return MAPPING.tag if isinstance(value, Mapping) or hasattr(value, "model_fields_set") else None


def _family(value: Any) -> str | None:
    family = value.get("family") if isinstance(value, Mapping) else getattr(value, "family", None)
    return f"<{family}>" if isinstance(family, str) else None
