"""The lines of a log around what ended the script, with who said them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sagefit.failures.diagnosis import Diagnosis
from sagefit_launcher import log_lines

BEFORE, AFTER = 4, 2  # lines
LONGEST = 400  # characters of a line that are shown
_OF_LAUNCHER = "sagefit: "
SHORTEST = 12  # characters: less is in too many lines to say which one it was

_ADDED = re.compile(r"; (?:host memory|GPU memory|disk|/\S+ was) .*$")  # what is known besides the line
_HOW = re.compile(r"^.{1,80}? (?:ended with exit code \d+|GiB)[^:]{0,80}: ")  # the launcher's words before the line


END = -1
"""The place of the cause where no line has it: then the lines are the end of the log."""


class Excerpt(NamedTuple):
    """Lines of one host's log: ``first`` is the number of the first, from 1, and ``at`` the place of the cause."""

    host: str
    rank: str
    first: int
    lines: tuple[str, ...]
    at: int

    def as_json(self) -> dict[str, object]:
        """The object ``around`` of ``sagefit diagnose --json``."""
        return {
            "host": self.host,
            "rank": self.rank or None,
            "line": self.first + self.at if self.at != END else None,
            "first_line": self.first,
            "lines": list(self.lines),
        }


def around(logs: Mapping[str, Sequence[str]], diagnosis: Diagnosis) -> Excerpt | None:
    """The last line of any host's log that has the evidence, with the lines around it; None where none has it."""
    wanted = tuple(_wanted(diagnosis.evidence))
    of_launcher = False, True  # its own line says what it read in another, which is the cause
    for text, whose in ((text, whose) for whose in of_launcher for text in wanted):
        for host, lines in logs.items():
            for number in range(len(lines) - 1, -1, -1):
                line = " ".join(log_lines.plain(lines[number]).split())
                if text in line and (whose or not line.startswith(_OF_LAUNCHER)):
                    return _excerpt(host, lines, number)
    return None


def ending(logs: Mapping[str, Sequence[str]]) -> Excerpt | None:
    """The end of the longest log, for a failure that no line explains; None without a log."""
    host = max(logs, key=lambda each: len(logs[each]), default=None)
    if host is None or not logs[host]:
        return None
    lines = [line for line in logs[host] if not line.startswith("[sagefit] ")] or logs[host]
    shown = tuple(_shown(line) for line in lines[-BEFORE:])
    return Excerpt(host, "", len(logs[host]) - len(shown) + 1, shown, END)


def _excerpt(host: str, lines: Sequence[str], number: int) -> Excerpt:
    first = max(0, number - BEFORE)
    shown = tuple(_shown(line) for line in lines[first : number + 1 + AFTER])
    return Excerpt(host, log_lines.speaker(lines[number]), first + 1, shown, number - first)


def _shown(line: str) -> str:
    """A line as it may be printed: nothing in it moves the cursor."""
    text = "".join(letter if letter.isprintable() else " " for letter in log_lines.plain(line.expandtabs(4)))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _wanted(evidence: str) -> Iterator[str]:
    """What to look for: the evidence, then less of it."""
    bare = _HOW.sub("", _ADDED.sub("", evidence))
    for text in (evidence, bare, bare.removesuffix("...")[:200].rstrip()):
        if len(text) >= SHORTEST or text == evidence:
            yield text
