"""The lines of a log as they count: without colours, prefixes, source code and the frames of tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

TAIL = 2000  # lines; what was said before them did not end the script
LONGEST = 4000  # characters of one line

HEAD, CAUSE, CONTEXT, EXCEPTION, TEXT = "head", "cause", "context", "exception", "text"

_CAUSE = "The above exception was the direct cause of the following exception"
_CONTEXT = "During handling of the above exception, another exception occurred"
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_LEVEL = r"(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)"
_PREFIX = re.compile(
    r"(?:"
    r"\[rank\d+\]:\s?"  # torchrun
    r"|\[\d+,\d+\]<std(?:err|out)>:\s?"  # Open MPI
    r"|\([\w .-]{0,60}pid=[^)]{1,80}\)\s?"  # Ray
    r"|[\w.-]{1,60} *\| "  # Docker Compose
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]{0,10}(?:Z|[+-]\d\d:?\d\d)?\]?:?\s"
    rf"|{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d [\w./]{{1,80}}:\d+\]\s"  # vLLM
    rf"|{_LEVEL}\s?(?:[:|-]|\[[^\]]{{0,80}}\])?\s"
    r"|\[[^][]{0,100}\d[^][]{0,100}\]\s"
    r"|E {3,}"  # pytest
    r"|\*\*"
    r'|ErrorMessage "'  # sagemaker-training-toolkit
    r")"
)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):?\s*$")
_FRAME = re.compile(r'(\s*)File "[^"]*", line \d')
_DRAWN = re.compile(r"\s*[│╭╰❱]|\s*-+>\s*\d|\s*\^[\^~]|\s*at [\w$.]+\(|\s+raise \w|\s*frame #\d|\s*\[bt\] \(")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w{0,80}\.){0,12}(?:[A-Z]\w{0,80}(?:Error|Exception|Interrupt)|error)\b\s?(?::|$)"
)


class Line(NamedTuple):
    """A line that counts. ``raw`` has its prefixes; ``source`` is the line of code that raised an exception."""

    kind: str
    text: str
    raw: str
    source: str = ""
    indent: int = 0


def read(log: Sequence[str]) -> Iterator[Line]:
    """The lines that count at the end of ``log``, in order."""
    frame: int | None = None
    source = ""
    for raw in _split(log):
        text = _without_prefixes(raw)
        indent = len(text) - len(text.lstrip())
        found = _FRAME.match(text)
        if found:
            frame, source = len(found.group(1)), ""
            continue
        if frame is not None and indent >= max(frame, 1):
            source = source or text.strip()
            continue
        raised, frame = frame is not None, None
        text = text.strip().rstrip("*").rstrip()
        if _TRACEBACK.search(text):
            yield Line(HEAD, text, raw)
        elif _CAUSE in text:
            yield Line(CAUSE, text, raw)
        elif _CONTEXT in text:
            yield Line(CONTEXT, text, raw)
        elif raised:
            yield Line(EXCEPTION, text, raw, source)
        elif not _DRAWN.match(raw):
            yield Line(EXCEPTION if _EXCEPTION.match(text) else TEXT, text, raw, indent=indent)


def is_exception(text: str) -> bool:
    """Whether a line names an exception."""
    return _EXCEPTION.match(text) is not None


def _split(log: Sequence[str]) -> Iterator[str]:
    for line in log[-TAIL:]:
        for part in line[: 8 * LONGEST].replace("\0", "").splitlines() or [""]:
            clean = _COLOURS.sub("", part).expandtabs(4).rstrip()
            if len(clean) > LONGEST:
                clean = f"{clean[: LONGEST // 2]} ... {clean[-LONGEST // 2 :]}"
            if clean:
                yield clean


def _without_prefixes(line: str) -> str:
    at = 0
    for _ in range(6):
        found = _PREFIX.match(line, at)
        if not found:
            break
        at = found.end()
    return line[at:]
