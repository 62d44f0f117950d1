"""The small value types of a job file: durations, names, hyperparameters; and what all its parts share."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)\s*([smhd])")
_MOST_DIGITS = 10

NUMBER_PATTERN = r"\d+(\.\d*)?[eE]\d+"
NAME_PATTERN = r"^[a-z0-9](-?[a-z0-9])*$"


class Fields(BaseModel):
    """What all parts of a job file have in common: unknown keys and silent conversions are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Code(Fields):
    """The code of a container: a folder and the script in it that starts.

    ``exclude`` leaves files out. ``allow_sensitive`` names files that look like secrets and may be uploaded.
    ``offline_requirements`` says that its requirements.txt needs no network: the image has the packages, or the folder.
    """

    source_dir: str
    entry_point: str
    arguments: list[str] = []
    exclude: list[str] = []
    allow_sensitive: list[str] = []
    offline_requirements: bool = False


class Source(Fields):
    """Where data comes from: an S3 uri, a local file or folder, or ``STEP/OUTPUT`` of a processing step.

    ``exclude`` and ``allow_sensitive`` are about the files of a local folder, as those of the code are.
    """

    uri: str | None = None
    exclude: list[str] = []
    allow_sensitive: list[str] = []
    step_output: str | None = Field(default=None, alias="from")

    @property
    def is_local(self) -> bool:
        """Whether the data lies on this machine and Terraform uploads it."""
        return self.uri is not None and "://" not in self.uri


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        parts = _DURATION.findall(value)
        if not parts or _DURATION.sub("", value).strip() or any(len(number) > _MOST_DIGITS for number, _ in parts):
            shown = value if len(value) <= 40 else f"{value[:40]}..."
            raise ValueError(
                f"{shown!r} is no duration; write for example 90s, 45m, 4h, 1h30m, 2d or a number of seconds"
            )
        return sum(int(number) * _UNITS[unit] for number, unit in parts)
    return value


Seconds = Annotated[int, BeforeValidator(_seconds), Field(strict=True, ge=0)]
"""A duration: seconds, or text such as ``4h`` or ``1h30m``."""


def _with_exponent(value: Any) -> Any:
    return float(value) if isinstance(value, str) and re.fullmatch(NUMBER_PATTERN, value) else value


Number = Annotated[float, BeforeValidator(_with_exponent), Field(strict=True, allow_inf_nan=False)]
"""A number, also as ``7.0e9``: YAML 1.1 takes an exponent without a sign for text."""

Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=40)]
PlatformName = Annotated[str, Field(pattern=NAME_PATTERN, max_length=20)]

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
Hyperparameter = Scalar | list[Any] | dict[str, Any]


def as_text(value: Hyperparameter) -> str:
    """``value`` as SageMaker wants it: every hyperparameter and variable is a string.

    Booleans become ``true`` and ``false``, lists and mappings become JSON, with sorted keys.
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def duration(seconds: float) -> str:
    """``seconds`` for people: ``4 h``, ``1 h 30 min``, ``12 s``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 and seconds != whole else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
