"""The lines of a log as they count: without colours, prefixes, source code and the frames of tracebacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

TAIL = 10_000  # lines; what was said before them did not end the script
LONGEST = 4000  # characters of one line

HEAD, CAUSE, CONTEXT, EXCEPTION, TEXT = "head", "cause", "context", "exception", "text"

_CAUSE = "The above exception was the direct cause of the following exception"
_CONTEXT = "During handling of the above exception, another exception occurred"
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_LEVEL = r"(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)"
_PREFIX = re.compile(
    r"(?:"
    r"\[(?:rank|default)\d+\]:\s?"  # torchrun
    r"|\[\d+,(?:mpirank:\d+,algo-)?\d+\]<std(?:err|out)>:\s?"  # Open MPI, and as SageMaker's toolkit starts it
    r"|\([\w .-]{0,60}pid=[^)]{1,80}\)\s?"  # Ray
    r"|[\w.-]{1,60} *\|(?: |$)"  # Docker Compose
    r"|(?:[\w.-]{1,80}/)?algo-\d+-\d{10}(?:\s|$)"  # aws logs tail
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]{0,10}(?:Z|[+-]\d\d:?\d\d)?\]?:?(?:\s|$)"
    rf"|{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]{{1,80}}:\d+\]\s"  # vLLM
    rf"|{_LEVEL}\s?(?:[:|-]|\[[^\]]{{0,80}}\])?\s"
    r"|\[(?:[^][]{0,100}\d[^][]{0,100}|[Ee]rror|ERROR|[Ww]arning|[Ii]nfo)\]\s"
    r"|E {3,}"  # pytest
    r"|(?:Caused by: |Exception in thread \"main\" )(?=[a-z])"  # of the JVM: what comes last was first
    r"|\*\*"
    r'|ErrorMessage "'  # sagemaker-training-toolkit
    r")"
)
_FIELD = re.compile(r"\"(?:message|log|msg)\" {0,3}: {0,3}(?=\")")  # of CloudWatch's exports and Docker's files
# What a line that is an object says of a failure beside its message, as libraries for such logs name it.
_OF_FAILURE = (
    "error",
    "err",
    "exc",
    "detail",
    "exception",
    "exc_info",
    "stack",
    "stack_info",
    "stack_trace",
    "stacktrace",
)
_JSON = re.compile(r" {0,40}(?:\"\w{1,40}\": ?.{0,400}|[][{}]{1,9}),? {0,3}")  # the rest of such an export
_EVENT = re.compile(r"\d{13},(\"?)(.*)\1$")  # of CloudWatch's CSV
_SPEAKER = re.compile(r"\[(?:rank|default)\d+\]|\[\d+,[\w:,-]{1,40}\]<|\bpid=\d+|\balgo-\d+")  # within a prefix
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):?\s*$")
_FRAME = re.compile(r'(\s*)File "([^"]*)", line \d+(?! in )')
_DRAWN = re.compile(
    r"\s*[│╭╰❱]|\s*-+>\s*\d|\s*\^[\^~]|\s*at [\w$.]+\(|\s+raise \w|\s*frame #\d|\s*\[bt\] \("
    r'|\s*File "[^"]*", line \d+ in |(?:Current t|T)hread 0x[\da-f]+ .{0,80}\(most recent call first\):'  # faulthandler
    r"|Extension modules: "
)
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w{0,80}\.){0,12}(?:[A-Z]\w{0,80}(?:Error|Exception|Interrupt)|error)\b\s?(?::|$)"
)


_RAISED = re.compile(r"raise ([A-Za-z_][\w.]{0,120})\(f?([\"'])(.{1,400})\2\)(?: from \w{1,80})?")
_METRICS = re.compile(r"\[sagefit\] (?:\w+=[\d.]+(?: (?=\w+=[\d.]))?)+")  # a line of the launcher
# Ranks that share a pipe: one's exception may be broken off by another's before its message.
_UNSAID = re.compile(r"(?:^|[\W_])(?:\w{1,80}\.){0,12}[A-Z]\w{0,80}(?:Error|Exception|Interrupt)$")

_NONE = (0, "", "")  # no traceback


class Line(NamedTuple):
    """A line that counts. ``raw`` has its prefixes.

    ``source`` is the line of code that raised an exception, ``frame`` the path of the file that has it.
    """

    kind: str
    text: str
    raw: str
    source: str = ""
    indent: int = 0
    frame: str = ""


def read(log: Sequence[str]) -> Iterator[Line]:
    """The lines that count at the end of ``log``, in order."""
    # The traceback that each process is in: its indent, and of its last frame the source line and the path.
    frames: dict[str, tuple[int, str, str]] = {}
    who = ""
    for raw in _split(log):
        at = _end_of_prefixes(raw)
        text = raw[at:]
        if not text:
            continue  # an empty line of one process
        indent = len(text) - len(text.lstrip())
        who = _speaker(raw, at)
        found = _FRAME.match(text)
        if found:
            frames[who] = len(found.group(1)), "", found.group(2)
            continue
        frame, source, path = frames.get(who, _NONE)
        if who in frames and indent >= max(frame, 1):
            frames[who] = frame, source or text.strip(), path
            continue
        raised = frames.pop(who, None) is not None
        text = text.strip().rstrip("*").rstrip()
        if _TRACEBACK.search(text):
            yield Line(HEAD, text, raw)
        elif _CAUSE in text:
            yield Line(CAUSE, text, raw)
        elif _CONTEXT in text:
            yield Line(CONTEXT, text, raw)
        elif raised:
            yield Line(EXCEPTION, text, raw, source, frame=path)
        elif not _DRAWN.match(raw):
            yield Line(EXCEPTION if _EXCEPTION.match(text) else TEXT, text, raw, indent=indent)
    _, source, _ = frames.get(who, _NONE)
    if found := _RAISED.fullmatch(source):  # the text ends within a traceback: its last frame says what is raised
        yield Line(EXCEPTION, f"{found.group(1)}: {found.group(3)}", source, source)


def plain(line: str) -> str:
    """A line without colours."""
    return _COLOURS.sub("", line).rstrip()


def speaker(line: str) -> str:
    """Which host, rank or process says a line, by its prefix; empty where it has none."""
    clean = plain(line)
    return _speaker(clean, _end_of_prefixes(clean))


def _speaker(line: str, end: int) -> str:
    found = _SPEAKER.search(line, 0, end)  # a path in a traceback may have such words, too
    return found.group().strip("[]<") if found else ""


def is_exception(text: str) -> bool:
    """Whether a line names an exception."""
    return _EXCEPTION.match(text) is not None


def _split(log: Sequence[str]) -> Iterator[str]:
    before = ""
    for line in _unpacked([line.replace("\0", "") for line in log[-3 * TAIL :]])[-TAIL:]:
        for part in _ends(line, 8 * LONGEST).splitlines() or [""]:
            clean = _COLOURS.sub("", part).expandtabs(4).lstrip("\ufeff").rstrip()
            for each in filter(None, _apart(clean)):
                if each.startswith(":") and _UNSAID.search(before):
                    before += each  # its message came in a piece of its own
                    continue
                if before:
                    yield before
                before = _ends(each, LONGEST)
    if before:
        yield before


def _apart(line: str) -> Iterator[str]:
    """What is around the launcher's metric lines, each with the prefix of all: they may be written into any line."""
    if "[sagefit] " not in line:
        yield line
        return
    at = _end_of_prefixes(line)
    yield from (line[:at] + part for part in _METRICS.split(line[at:]) if part and not part.isspace())


def _ends(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]} ... {text[-longest // 2 :]}"


def _unpacked(log: Sequence[str]) -> list[str]:
    """The messages of lines that are JSON or CSV, the other lines as they are."""
    lines: list[str] = []
    indented = any(_FIELD.match(line.lstrip()) for line in log)  # one field in each line
    for line in log:
        before, *fields = _FIELD.split(line) if _FIELD.search(line) else [line]
        if fields and _opens(before):
            lines += _inner([_string(field) for field in fields[-TAIL:]])
            lines += _of_failure(line) if len(fields) == 1 else []
        elif not (indented and _JSON.fullmatch(line)):
            found = _EVENT.match(line)
            quoted = found and found.group(1)
            lines += _inner([found.group(2).replace('""', '"') if quoted else found.group(2)]) if found else [line]
    return lines


def _inner(said: list[str]) -> list[str]:
    """Messages, of which some may be objects that the script wrote."""
    return _unpacked(said) if any(map(_FIELD.search, said)) else said


def _opens(before: str) -> bool:
    """Whether an object or a list begins here, after what may stand before each line."""
    clean = plain(before)
    return clean.lstrip()[:1] in ("", "{", "[") or clean[_end_of_prefixes(clean) :].lstrip()[:1] == "{"


def _of_failure(line: str) -> Iterator[str]:
    """What an object says of a failure; something may be around it."""
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(line, max(line.find("{"), 0))
    except ValueError:  # cut off
        return
    for name in _OF_FAILURE if isinstance(found, dict) else ():
        if isinstance(found.get(name), str):
            yield from found[name].splitlines()


def _string(text: str) -> str:
    """The JSON string at the beginning of a text, without its quotes."""
    try:
        return str(json.JSONDecoder(strict=False).raw_decode(text)[0])
    except ValueError:  # cut off
        return text[1:]


def _end_of_prefixes(line: str) -> int:
    at = 0
    for _ in range(6):
        found = _PREFIX.match(line, at)
        if not found:
            break
        at = found.end()
    return at
