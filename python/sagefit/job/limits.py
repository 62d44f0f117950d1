"""How large a field of a job may be, and which characters it may have: ``modules/training-job/limits.json``.

A row names the field in the job file and in Terraform, its bound, and the source of the bound. The module's validations
read the table, and here the types of the job file and the rules between its fields.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Literal, NamedTuple

from pydantic import Field

from sagefit.paths import LIMITS_JSON


class Limit(NamedTuple):
    """One row. ``least`` and ``most`` count what ``of`` names; ``words`` describes the texts that ``pattern`` allows.

    Of these texts, those that ``reserved`` matches are names that Sagefit makes itself.

    The parts of ``field`` are those of the job file. ``*`` stands for every entry of a list and every key of a mapping,
    and ``value`` after it for the value under the key.
    """

    field: str
    terraform: str
    of: Literal["characters", "entries", "number", "seconds"]
    source: str
    least: int | None = None
    most: int | None = None
    pattern: str | None = None
    words: str = ""
    reserved: str | None = None


@cache
def limits() -> dict[str, Limit]:
    """All rows, by the job file's field."""
    return {row["field"]: Limit(**row) for row in json.loads(LIMITS_JSON.read_text(encoding="utf-8"))}


def most(field: str) -> int:
    """The upper bound of a field that has one."""
    found = limits()[field].most
    if found is None:
        raise KeyError(f"{field} has no upper bound")
    return found


def in_job_words(text: str) -> str:
    """A message of the module, with the field names of the job file.

    >>> in_job_words("resources.poll_seconds, channels[*].s3_uri: too many")
    'resources.poll_interval, inputs[*].uri: too many'
    """
    return _terraform_names().sub(lambda found: _OWN_NAMES.get(found[0]) or _job_names()[found[0]], text)


_OWN_NAMES = {"channels[*].local_path": "inputs[*].uri", "channels": "inputs"}


@cache
def _job_names() -> dict[str, str]:
    """Fields of the module that have another name in a job file."""
    names = {row.terraform: row.field.replace(".*", "[*]") for row in reversed(limits().values())}
    return {theirs: ours for theirs, ours in names.items() if theirs != ours}


@cache
def _terraform_names() -> re.Pattern[str]:
    names = sorted({*_job_names(), *_OWN_NAMES}, key=len, reverse=True)
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")


def bounded(field: str) -> Any:
    """The bound of a field as pydantic takes it: ``Annotated[str, bounded("description")]``."""
    row = limits()[field]
    if row.of in ("number", "seconds"):
        return Field(ge=row.least, le=row.most)
    return Field(min_length=row.least, max_length=row.most, pattern=row.pattern)
