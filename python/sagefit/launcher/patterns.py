"""The table of failure patterns, and how text is matched against it: the one implementation for all of Sagefit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

FAILURE_REASON = "failure_reason"
CREATE_ERROR = "create_error"
SECONDARY_STATUS = "secondary_status"
LOG = "log"

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\s*$")
_RANK = re.compile(r"^\[rank\d+\]:\s?")  # torchrun marks the lines of each rank
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_WRAPPERS = ("ChildFailedError", "CalledProcessError", "ProcessExitedException")  # they only repeat a child's failure
_LONGEST_MESSAGE = 40  # lines; whatever follows a traceback for longer is a script that went on


class Pattern(NamedTuple):
    """One row of the table."""

    failure_class: str
    where: str
    glob: str
    confidence: str
    source: str
    examples: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Whether the whole of ``text`` matches; only ``*`` is special, as in StringMatches of Step Functions."""
        return re.fullmatch(".*".join(map(re.escape, self.glob.split("*"))), text, re.DOTALL) is not None


class Match(NamedTuple):
    """A pattern and the text it was found in."""

    pattern: Pattern
    text: str


def load(path: Path | None = None) -> list[Pattern]:
    """The table: beside this file in a container, in the Terraform module that owns it in a checkout."""
    here = Path(__file__).resolve()
    places = [path] if path else [here.with_name("failures.json")]
    if not path and len(here.parents) > 3:
        places.append(here.parents[3] / "modules" / "training-job" / "failures.json")
    found = next((place for place in places if place.is_file()), places[0])
    rows = json.loads(found.read_text(encoding="utf-8"))["patterns"]
    return [
        Pattern(
            row["class"],
            row["where"],
            row["glob"],
            row["confidence"],
            row["source"],
            tuple(row["examples"]),
        )
        for row in rows
    ]


def first(table: Iterable[Pattern], where: Sequence[str], text: str) -> Match | None:
    """The first row of one of those kinds that matches: the order of the table is the precedence."""
    return next((Match(row, text) for row in table if row.where in where and row.matches(text)), None)


def first_line(table: Iterable[Pattern], lines: Sequence[str]) -> Match | None:
    """The row of highest precedence that matches any of these log lines."""
    wanted = [row for row in table if row.where in (LOG, FAILURE_REASON)]
    return next((Match(row, line.strip()) for row in wanted for line in lines if row.matches(line)), None)


def last_words(table: Sequence[Pattern], log: Sequence[str], *, quiet: int = 5) -> tuple[Match | None, str]:
    """What the end of a script's log says: the pattern found, if any, and the line that tells most.

    Only the exception that ended the script counts, not one that it caught, logged and survived. Without a
    traceback at the end the last ``quiet`` lines count. Source lines inside a traceback are no words of the script.
    """
    lines = [_RANK.sub("", line.rstrip()) for line in log]
    heads = [number for number, line in enumerate(lines) if _TRACEBACK.search(line)]
    weak = None
    told = ""
    end = len(lines)
    for head in reversed(heads):
        start = next((n for n in range(head + 1, end) if lines[n] and not lines[n][0].isspace()), end)
        message = [line for line in lines[start:end] if line]
        if not told and len(message) > _LONGEST_MESSAGE:
            break
        told = told or (message[0] if message else "")
        match = first_line(table, message)
        if match and match.pattern.confidence != "C":
            return match, match.text
        weak = weak or match
        before = next((line for line in reversed(lines[:head]) if line), "")
        wrapped = bool(message) and message[0].split(":")[0].endswith(_WRAPPERS)
        if not (wrapped or before == _CAUSE or (match and before == _CONTEXT)):
            break
        end = head
    if told:
        return weak, weak.text if weak else told
    spoken = [line for line in lines if line.strip()]
    match = first_line(table, spoken[-quiet:])
    return match, match.text if match else (spoken[-1].strip() if spoken else "")
