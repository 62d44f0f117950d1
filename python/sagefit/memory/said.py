"""What another place than the memory block says of a field of it."""

from __future__ import annotations

from dataclasses import dataclass

from sagefit.job.key import Key


@dataclass(frozen=True)
class Said:
    """A value of a field of the memory block that another place says, with the place and its words."""

    field: str
    value: object
    place: Key
    words: str
