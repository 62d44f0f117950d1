"""What is wrong with a job file, and how it is said: file, line, field, rule and knob."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.job.source import Key, Lines, line_of
from sagefit.paths import display

_MOST = 20
_SHOWN = 100  # characters of a word that has no end
_ENDLESS = re.compile(r"\S{400,}")


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a job file."""

    field: Key
    message: str
    knob: str


def refusal(path: Path, lines: Lines, found: Sequence[Problem]) -> SagefitError:
    """The error that lists ``found``, the first twenty of them."""
    rows = []
    for problem in found[:_MOST]:
        line = line_of(lines, problem.field)
        where = f"{display(path)}:{line}" if line else display(path)
        rows.append(f"{where}: {dotted(problem.field)}: {_cut(problem.message)}\n  {problem.knob}")
    if len(found) > _MOST:
        rows.append(f"... and {len(found) - _MOST} more")
    return SagefitError("\n".join(rows))


def _cut(message: str) -> str:
    """Without the ends of words that fill the screen."""
    return _ENDLESS.sub(lambda word: f"{word[0][:_SHOWN]}... ({len(word[0]):,} characters)", message)


def dotted(field: Key) -> str:
    """``field`` as people write it: ``attempts[0].name``."""
    text = ""
    for part in field:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the file"
