"""Problems of a job file and their message: file, line, field, rule and knob."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.job.key import Key, Lines, dotted
from sagefit.job.secrets import looks_secret
from sagefit.paths import display

_MOST = 20
_SHOWN = 100  # characters of a word that has no end
_ENDLESS = re.compile(r"\S{400,}")


_MOST_GIVEN = 60


@dataclass(frozen=True)
class Problem:
    """One problem of a job file. A short text at ``field`` is shown with it, unless ``alone`` is set."""

    field: Key
    message: str
    knob: str
    alone: bool = False


def secret(field: Key) -> Problem:
    """The problem of a field whose value looks like a secret, which is not shown."""
    return Problem(
        field,
        "the value looks like a secret, and job definitions, plans and logs are readable",
        "keep it in Secrets Manager and let the script read it with the execution role",
        alone=True,
    )


def refusal(path: Path, lines: Lines, found: Sequence[Problem]) -> SagefitError:
    """The error that lists ``found``, the first twenty of them."""
    return SagefitError("\n".join(told(path, lines, found)))


def told(path: Path, lines: Lines, found: Sequence[Problem]) -> list[str]:
    """``found`` with the lines of the file, the first twenty of them."""
    rows = []
    for problem in found[:_MOST]:
        line = lines.of(problem.field)
        where = f"{display(path)}:{line}" if line else display(path)
        message = _cut(problem.message) + _given(lines, problem)
        rows.append(f"{where}: {dotted(lines.spelt(problem.field))}: {message}\n  {problem.knob}")
    if len(found) > _MOST:
        rows.append(f"... and {len(found) - _MOST} more")
    return rows


def _given(lines: Lines, problem: Problem) -> str:
    """The text at the field, unless the message contains it. Environment variables are never shown."""
    text = lines.texts.get(problem.field, "") if "environment" not in problem.field else ""
    if not text or problem.alone or len(text) > _MOST_GIVEN or "\n" in text:
        return ""
    if any(text in said for said in (problem.message, problem.knob)) or looks_secret(str(problem.field[-1]), text):
        return ""
    return f", and '{text}' is given"


def _cut(message: str) -> str:
    """The message with very long words cut."""
    return _ENDLESS.sub(lambda word: f"{word[0][:_SHOWN]}... ({len(word[0]):,} characters)", message)
