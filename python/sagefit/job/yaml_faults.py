"""YAML errors in words that an author understands: the line where something is missing, and what to write there.

PyYAML names the line where it could not continue, often the line below the error, and uses terms of its grammar.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

_CONFLICT = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)
_NO_SPACE = re.compile(r"^\s*(?:- )?([A-Za-z_][\w-]*):(?=[^\s/:\\]\S*\s*(?:#.*)?$)")
_OPENING, _CLOSING = "\u201c\u201d\u201e\u00ab\u2018\u2019\u201a", "\u201c\u201d\u00bb\u2018\u2019"
_QUOTE_IT = "put the value in quotes"


class Fault(NamedTuple):
    """What is wrong; ``line`` (from 1) is None where no line is at fault."""

    line: int | None
    message: str
    hint: str | None = None


def fault_of(error: yaml.MarkedYAMLError, text: str) -> Fault:
    """``error`` about ``text``, with the wrong line and the remedy when they can be determined."""
    rows = text.split("\n")
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        return Fault(line, "a marker of a merge conflict stands in the file", "keep one side, and remove the markers")
    problem = error.problem or error.context or "not valid YAML"
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Fault(None, f"not valid YAML: {problem}")
    at = mark.line + 1
    row = rows[mark.line] if mark.line < len(rows) else ""
    if "mapping values are not allowed" in problem:
        return _unexpected_colon(rows, at, row[: mark.column], problem)
    if "found another document" in problem:
        return Fault(at, "a job file holds one job, and here a second document begins", "put it into a file of its own")
    if "cannot start any token" in problem:
        return _no_token(at, row[mark.column : mark.column + 1])
    if (error.context or "").startswith(("while scanning an alias", "while scanning an anchor")):
        sign = row.lstrip(" -")[mark.column - len(row) + len(row.lstrip(" -")) - 1 :][:1] or "*"
        where = error.context_mark.line + 1 if error.context_mark else at
        message = f"not valid YAML: a value that begins with {sign if sign in '*&' else '* or &'} names an anchor"
        return Fault(where, message, f'{_QUOTE_IT}, such as "*.md"')
    if "undefined alias" in problem:
        return Fault(at, f"not valid YAML: {problem}", f"{_QUOTE_IT} if the * belongs to it, or define the anchor")
    if "quoted scalar" in (error.context or "") and error.context_mark is not None:
        return _quoted(error.context_mark.line + 1, at, problem)
    if "could not find expected ':'" in problem and error.context_mark is not None:
        return _no_colon(rows, error.context_mark.line + 1, problem)
    if "expected <block end>" in problem or "did not find expected" in problem:
        hint = "the keys of one block begin in the same column; check the indentation, and dashes that are missing"
        return Fault(at, f"not valid YAML: {problem}", hint)
    if "flow" in (error.context or ""):
        opened = error.context_mark.line + 1 if error.context_mark else at
        return Fault(opened, f"not valid YAML: {problem}", "close the bracket, and part entries by commas")
    return Fault(at, f"not valid YAML: {problem}")


def trap_in(node: yaml.ScalarNode, key_line: int, in_list: bool) -> Fault | None:
    """A value without quotes that YAML accepts as text although nobody intends that."""
    start = node.start_mark.line + 1
    value = node.value
    if start > key_line and not in_list and re.match(r"-(?=[^\s\d-])", value):
        first = value.split(" -")[0].removeprefix("-")
        return Fault(
            start,
            f"{value[:40]!r} is one text to YAML, and no list",
            f"write a space after the dash: - {first[:40]}",
        )
    if re.fullmatch(rf"[{_OPENING}].*[{_CLOSING}]", value, re.DOTALL):
        shown = value[1:-1] if len(value) <= 40 else "..."
        return Fault(
            start,
            f"{value[:40]} stands in typographic quotes, which YAML takes for letters of the text",
            f'write straight quotes: "{shown}"',
        )
    return None


def _unexpected_colon(rows: list[str], at: int, before: str, problem: str) -> Fault:
    """A colon where none can be: inside a value, below a key without a space, or below a wrong indentation."""
    above = next((number for number in range(at - 1, 0, -1) if rows[number - 1].strip()), None)
    if above and (found := _NO_SPACE.match(rows[above - 1])):
        wrong = rows[above - 1].strip()
        right = wrong.replace(f"{found[1]}:", f"{found[1]}: ", 1)
        return Fault(above, f"not valid YAML: {wrong!r} has no space after the colon", f"write {right}")
    if ":" in before:
        return Fault(at, f"not valid YAML: a second ': ' in one value ({problem})", _colon_hint(before))
    message = f"not valid YAML: {problem}"
    return Fault(at, message, "check the indentation: the keys of one block have the same number of spaces before them")


def _colon_hint(before: str) -> str:
    key, _, value = before.partition(":")
    start = value.strip()
    shown = f", such as {key.strip(' -')}: '{start}: ...'" if start and start[0] not in "\"'{[" else ""
    return f"{_QUOTE_IT}, because of the colon in it{shown}"


def _no_token(at: int, sign: str) -> Fault:
    if sign == "\t":
        return Fault(at, "not valid YAML: a tab stands before a key or value", "indent with spaces, never with tabs")
    return Fault(at, f"not valid YAML: no value begins with {sign}", f'{_QUOTE_IT}: "{sign}..."')


def _quoted(opened: int, at: int, problem: str) -> Fault:
    if "unknown escape" in problem or "escape" in problem:
        hint = "in double quotes a backslash begins an escape; put the value in single quotes: '\\d'"
        return Fault(at, f"not valid YAML: {problem}", hint)
    return Fault(opened, "not valid YAML: the quote that opens here is not closed", "close it, or remove it")


def _no_colon(rows: list[str], at: int, problem: str) -> Fault:
    row = rows[at - 1].strip()
    if found := _NO_SPACE.match(row):
        return Fault(
            at,
            f"not valid YAML: {row!r} has no space after the colon",
            f"write {row.replace(f'{found[1]}:', f'{found[1]}: ', 1)}",
        )
    if "=" in row:
        key, _, value = row.partition("=")
        return Fault(at, f"not valid YAML: {row!r} is no key with a colon", f"write {key.strip()}: {value.strip()}")
    return Fault(at, f"not valid YAML: {row!r} has no colon", f"write a key, a colon and a space ({problem})")
