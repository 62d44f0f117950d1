"""What the end of a script's log says: the failure that ended it, not one it survived, nor an echo of another's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from . import log_lines, patterns
from .log_lines import CAUSE, CONTEXT, EXCEPTION, HEAD, Line
from .patterns import CREATE_ERROR, ECHO, FAILURE_REASON, LOG, TRACEBACK, Match, Pattern, first

LAST = 3  # lines at the end of a log, of which each may be why it ended
FAR = 60  # lines of talk after which a failure is history

_PROGRESS = re.compile(
    r"(?:\b(?:epochs?|steps?|iter|iterations?|global_step|batch)\b\W{0,4}|\bloss\b\W{0,4}|\d%\|[^|]{0,200}\|\s{0,3})(\d[\d.]*)",
    re.IGNORECASE,
)
_TROUBLE = re.compile(r"error|exception|fail|crash|kill|memory|oom\b", re.IGNORECASE)
_FATAL = re.compile(
    r"\b(?:error|exception|fatal|fail(?:s|ed|ure)?|abort(?:ed|ing)?|terminat(?:e|ed|ing))\b", re.IGNORECASE
)
_ADVICE = re.compile(
    r"\b(?:if|may|might|can|could(?! not)|should|avoid|prevent|tip|note|hint|help|try)\b|(?:^|\s)--\w", re.IGNORECASE
)
_OF_NAMES = re.compile(r"\b(?:Attribute|Import|ModuleNotFound|Name|Key|Type|Syntax|Assertion|FileNotFound)Error:")
_OVER = re.compile(r"\btraining (?:has )?(?:finished|completed?|done)\b|\bfinished training\b", re.IGNORECASE)
_SURVIVED = re.compile(
    r"(?i:\b(?:skip|skipping|skipped|recover|recovering|recovered|retrying|retry with|trying (?:half|again|with)"
    r"|falling back|fall back|halving|reducing|lowering|decreasing|not a failure)\b)"
    r"|\b(?:WARNING|WARN|DEBUG|INFO)\b(?<!NCCL WARN)(?<!NCCL INFO)"
)


def last_words(table: Sequence[Pattern], log: Sequence[str]) -> tuple[Match | None, str]:
    """The pattern that tells what ended the script, None when nothing does, and the line that says most.

    Read from the end. An exception decides, unless it only repeats another (an echo), or was raised from another;
    progress after a failure, or much talk, means that the script went on. A weak pattern makes room for a stronger one.
    """
    lines = list(log_lines.read(log))
    told = echo = ""
    weak: Match | None = None
    closed = False  # an exception has been found, and nothing says that another caused it
    progress: set[str] = set()
    talk = 0
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if line.kind in (CAUSE, CONTEXT):
            closed = closed and line.kind == CONTEXT
            continue
        if line.kind == HEAD:
            continue
        if closed or talk > FAR:
            break
        match = _match(table, line, is_fatal=line.kind == EXCEPTION or _is_fatal(line, len(lines) - number))
        if match and _is_advice(match, line):
            continue
        if match and not _is_survived(lines[number : number + 2], is_last=number == len(lines) - 1):
            if not match.is_weak:
                return match, match.text
            weak = weak or match
        elif match:
            continue
        elif first(table, [ECHO], line.text):
            echo = echo or line.text
        elif line.kind == EXCEPTION and (line.source or not line.text.endswith(":")):
            if weak and not line.source:
                continue  # a remark, not what was raised
            told, closed, weak = told or line.text, True, None
        elif _OVER.search(line.text) and not _TROUBLE.search(line.text):
            break
        elif position := _position(line):
            progress.add(position)
            if len(progress) > 1:
                break
        elif not line.indent:
            talk += 1
    if weak:
        return weak, weak.text
    return None, told or echo or (lines[-1].text if lines else "")


def last_words_of_all(table: Sequence[Pattern], logs: Iterable[Sequence[str]]) -> tuple[Match | None, str]:
    """The same for the logs of several hosts: the one that says most is the cause, the others lost a peer."""
    found = [last_words(table, log) for log in logs]
    strong = [(match, said) for match, said in found if match and not match.is_weak]
    weak = [(match, said) for match, said in found if match]
    raised = [(match, said) for match, said in found if not match and said and not first(table, [ECHO], said)]
    exceptions = [each for each in raised if log_lines.is_exception(each[1])]
    # A memory failure anywhere makes the other hosts fail in ways of their own.
    strong.sort(key=lambda each: each[0].pattern.failure_class == "code")
    return next(iter([*strong, *exceptions, *weak, *raised, *found]), (None, ""))


def _match(table: Sequence[Pattern], line: Line, *, is_fatal: bool) -> Match | None:
    if line.source and (match := first(table, [TRACEBACK], f"{line.text} in {line.source}")):
        return Match(match.pattern, line.text)
    lower = line.text.lower() if is_fatal and not _OF_NAMES.search(line.text) else None
    for row in table:
        if row.where in (LOG, FAILURE_REASON) or (row.where == CREATE_ERROR and row.confidence != patterns.WEAK):
            if row.matches(line.text) or row.matches(line.raw):
                return Match(row, line.text)
        elif lower and row.where == patterns.EXCEPTION and row.matches(lower):
            return Match(row, line.text)
    return None


def _is_fatal(line: Line, from_end: int) -> bool:
    """Whether a line that is no exception tells of a failure all the same, and not how one is avoided."""
    return (from_end <= LAST or _FATAL.search(line.text) is not None) and not _ADVICE.search(line.text)


def _is_advice(match: Match, line: Line) -> bool:
    """Whether a line has the words of a loose pattern, but tells what to do about it, or of names in the code."""
    about = _OF_NAMES if line.kind == EXCEPTION else _ADVICE
    return match.is_weak and match.pattern.where == FAILURE_REASON and about.search(line.text) is not None


def _is_survived(lines: Sequence[Line], *, is_last: bool) -> bool:
    """Whether the script says itself that it goes on: in that line, or in the one after it."""
    head, *after = lines
    if is_last or head.source:
        return False
    if head.kind == EXCEPTION:  # its message may advise what the script does not do
        return _SURVIVED.search(head.raw[: -len(head.text)]) is not None
    return any(_SURVIVED.search(line.raw) for line in (head, *after) if line.kind == head.kind)


def _position(line: Line) -> str | None:
    found = None if _TROUBLE.search(line.text) else _PROGRESS.search(line.text)
    return found.group(1) if found else None
