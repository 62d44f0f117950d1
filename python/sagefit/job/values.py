"""The small value types of a job file: durations, names, hyperparameters; and what all its parts share."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from sagefit.job.forms import one_of

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)\s*([smhd])")
_MOST_DIGITS = 10
_AS_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
_LONG_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "wk", "week", "weeks"), 604800),
}

DURATION_TEXT = r"^(\s*\d+\s*[smhd]\s*)+$"
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


def from_duration(value: Any) -> Any:
    """Seconds of a duration in text; anything else as it is."""
    if not isinstance(value, str):
        return value
    if (seconds := _duration(value)) is None:
        shown = value if len(value) <= 40 else f"{value[:40]}..."
        context = {"given": repr(shown), "meant": " or ".join(durations_meant(value))}
        raise PydanticCustomError("no_duration", "{given} is no duration", context)
    return seconds


def from_pool(value: Any) -> Any:
    """Seconds of a duration in text; a name as it is."""
    seconds = _duration(value) if isinstance(value, str) else None
    return value if seconds is None else seconds


def _duration(text: str) -> int | None:
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip() or any(len(number) > _MOST_DIGITS for number, _ in parts):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def durations_meant(text: str) -> list[str]:
    """What people may mean by a duration in the notation of another tool; an empty list when it is unknown.

    >>> durations_meant("4 hours"), durations_meant("PT1H30M"), durations_meant("1-12:00:00"), durations_meant("0:30")
    (['4h'], ['1h30m'], ['1d12h'], ['30m', '30s'])
    """
    if clock := re.fullmatch(r"(?:(\d{1,4})-)?(\d{1,4}):([0-5]\d)(?::([0-5]\d))?", text.strip()):
        days, first, second, third = (int(part) if part else 0 for part in clock.groups())
        if clock[4] is None and clock[1] is None:  # hours and minutes for some, minutes and seconds for others
            return [as_written(first * 3600 + second * 60), as_written(first * 60 + second)]
        return [as_written(days * 86400 + first * 3600 + second * 60 + third)]
    words = re.sub(r"^p(?=[\dt])|(?<=\d[dw])t|^t(?=\d)|\band\b|,", " ", text.strip().lower().removeprefix("pt"))
    parts = re.findall(r"(\d{1,9}(?:\.\d{1,4})?)\s*([a-z]+)", words)
    if not parts or re.sub(r"\d{1,9}(?:\.\d{1,4})?\s*[a-z]+", "", words).strip():
        return []
    if not all(unit in _LONG_UNITS for _, unit in parts):
        return []
    return [as_written(round(sum(float(number) * _LONG_UNITS[unit] for number, unit in parts)))]


def as_written(seconds: int) -> str:
    """``seconds`` as a job file has them: ``4h``, ``1h30m``."""
    text = ""
    for unit, size in reversed(_UNITS.items()):
        count, seconds = divmod(seconds, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


Seconds = Annotated[int, Field(strict=True, ge=0), one_of("a duration", int), BeforeValidator(from_duration)]
"""A duration: seconds, or text such as ``4h`` or ``1h30m``."""

DurationOrName = Annotated[int | str, one_of("the name of a pool, or a duration", int, str), BeforeValidator(from_pool)]
"""A duration, or a name where the text is none."""


def from_exponent(value: Any) -> Any:
    """The number of a text that is one to YAML 1.2; anything else as it is."""
    return float(value) if isinstance(value, str) and re.fullmatch(NUMBER_PATTERN, value) else value


Number = Annotated[float, BeforeValidator(from_exponent), Field(strict=True, allow_inf_nan=False)]
"""A number, also as ``7.0e9``: YAML 1.1 takes an exponent without a sign for text."""

WholeOrNumber = Annotated[
    int | float, Field(allow_inf_nan=False), one_of("a number", int, float), BeforeValidator(from_exponent)
]
"""A number that stays whole where it is written whole."""

Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=40)]
PlatformName = Annotated[str, Field(pattern=NAME_PATTERN, max_length=20)]

Scalar = Annotated[
    StrictBool | StrictInt | StrictFloat | StrictStr, one_of("text, a number, true or false", str, int, float, bool)
]
Hyperparameter = Annotated[
    StrictBool | StrictInt | StrictFloat | StrictStr | list[Any] | dict[str, Any],
    one_of("text, a number, true or false, a list or a mapping", str, int, float, bool, list, dict),
]


def as_text(value: Hyperparameter) -> str:
    """``value`` as SageMaker wants it: every hyperparameter and variable is a string.

    Booleans become ``true`` and ``false``, lists and mappings become JSON, with sorted keys.
    """
    if isinstance(value, str):
        return value
    return _AS_JSON.encode(value)


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
