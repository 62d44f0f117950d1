"""The table of failure patterns, and how text is matched against it: the one implementation for all of Sagefit."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

FAILURE_REASON = "failure_reason"
CREATE_ERROR = "create_error"
SECONDARY_STATUS = "secondary_status"
LOG = "log"
LINE = "line"  # one line of a log, and clear enough to count in a failure reason, which may hold such lines
EXCEPTION = "exception"
TRACEBACK = "traceback"
ECHO = "echo"
SUMMARY = "reason"  # words of a failure reason; the words of a log's line are the vocabulary's
REASON = (FAILURE_REASON, LINE, SUMMARY)  # what is asked of a failure reason, by the state machine too
WEAK = "C"  # the confidence of a pattern that makes room for whatever says more


class Pattern(NamedTuple):
    """One row of the table."""

    failure_class: str
    where: str
    glob: str
    confidence: str
    source: str
    examples: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Whether the whole of ``text`` matches; only ``*`` is special, as in StringMatches of Step Functions.

        Each part is looked for once, after the one before it: the time is linear whatever the text is.
        """
        start, rest = _parts(self.glob)
        if not rest:
            return text == self.glob
        if not text.startswith(start):
            return False
        at = len(start)
        for part in rest[:-1]:
            at = text.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return len(text) - len(rest[-1]) >= at and text.endswith(rest[-1])


@lru_cache(maxsize=1024)
def _parts(glob: str) -> tuple[str, list[str]]:
    start, *rest = glob.split("*")
    return start, rest


@lru_cache(maxsize=1024)
def longest_part(glob: str) -> str:
    """What a text must contain to match."""
    return max(glob.split("*"), key=len)


class Match(NamedTuple):
    """A pattern and the text it was found in."""

    pattern: Pattern
    text: str

    @property
    def is_weak(self) -> bool:
        """Whether it is only likely."""
        return self.pattern.confidence == WEAK


@lru_cache(maxsize=4)
def load(path: Path | None = None) -> tuple[Pattern, ...]:
    """The table: beside this module where it is shipped, in the Terraform module that owns it in a checkout."""
    rows = json.loads((path.read_bytes() if path else _own()).decode("utf-8"))["patterns"]
    return tuple(
        Pattern(
            row["class"],
            row["where"],
            row["glob"],
            row["confidence"],
            row["source"],
            tuple(row["examples"]),
        )
        for row in rows
    )


def _own() -> bytes:
    try:
        shipped = pkgutil.get_data(__package__, "failures.json")
    except FileNotFoundError:
        shipped = None
    return shipped or (Path(__file__).resolve().parents[2] / "modules" / "training-job" / "failures.json").read_bytes()


def first(table: Iterable[Pattern], where: Sequence[str], text: str) -> Match | None:
    """The first row of one of those kinds that matches: the order of the table is the precedence."""
    return next((Match(row, text) for row in table if row.where in where and row.matches(text)), None)
