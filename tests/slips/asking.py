"""A slip as a job file, what the command line answers, and what the answer lacks.

A row is a valid job file of ``bases`` in which one thing is wrong, as people write it. ``says`` was written by people
who knew the pages and had not seen a message: what somebody needs to know to go on.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import typer

import yaml_tables
from sagefit.cli import app
from sagefit.console import print_error
from sagefit.errors import DOES_NOT_FIT, DONE, INVALID, SagefitError

HERE = Path(__file__).parent
Outcome = Literal["refused", "said", "accepted"]
_BLOCK = re.compile(r"^(?=[^\s#-])", re.MULTILINE)


@dataclass(frozen=True)
class Slip:
    """One slip. ``line`` is a piece of the line that the answer points to, ``field`` what it names.

    Of ``says`` each entry has to be in the answer, in any case of letters, one of its words between bars being enough;
    of ``never`` none. ``outcome`` is ``said`` where the job is taken and the screen of ``size`` has to say something,
    and ``accepted`` where something that looks wrong is right.
    """

    slip: str
    source: str
    base: str = ""
    write: str = ""
    remove: tuple[str, ...] = ()
    file: str = ""
    line: str = ""
    field: str = ""
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    outcome: Outcome = "refused"

    @property
    def text(self) -> str:
        """The whole job file."""
        if self.file:
            return self.file
        written: dict[str, str] = {}
        for block in _blocks(self.write):
            written[_name(block)] = written.get(_name(block), "") + block
        kept = [written.pop(_name(block), block) for block in _blocks(_base(self.base))]
        return "".join(block for block in [*kept, *written.values()] if _name(block) not in self.remove)


@dataclass(frozen=True)
class Answer:
    """What the command line printed, and its exit code."""

    code: int
    text: str


@cache
def slips() -> tuple[Slip, ...]:
    """All rows, in the order of the files."""
    files = [yaml_tables.read(path) for path in sorted(HERE.glob("*.yaml"))]
    return tuple(_slip(row) for rows in files for row in rows)


def _slip(row: dict[str, Any]) -> Slip:
    remove, says, never = (tuple(row.pop(name, ())) for name in ("remove", "says", "never"))
    return Slip(**row, remove=remove, says=says, never=never)


def prepare(folder: Path) -> None:
    """The code and the data beside the job files."""
    for name, files in {"code": ["train.py", "features.py"], "data": ["a.csv"], "empty": []}.items():
        (folder / name).mkdir()
        for file in files:
            (folder / name / file).write_text("1,2\n", encoding="utf-8")


def answer(slip: Slip, folder: Path) -> Answer:
    """What ``size`` says of the job, and where it refuses nothing, ``render`` too."""
    path = folder / "job.yaml"
    path.write_bytes(slip.text.encode())
    first = _ask("size", path)
    if first.code not in (DONE, DOES_NOT_FIT):
        return first
    second = _ask("render", path)
    return Answer(second.code, first.text + second.text) if second.code in (DONE, DOES_NOT_FIT) else second


def lacking(slip: Slip, given: Answer) -> Iterator[str]:
    """What is wrong with the answer; nothing where it is right."""
    expected = INVALID if slip.outcome == "refused" else DONE
    if given.code != expected and not (slip.outcome == "said" and given.code in (INVALID, DOES_NOT_FIT)):
        yield f"ends with {given.code} and not {expected}"
    said = _plain(given.text)
    for words in slip.says:
        if not any(_plain(word) in said for word in words.split(" | ")):
            yield f"says nothing of {words}"
    for words in slip.never:
        if _plain(words) in said:
            yield f"says {words}"
    if slip.field and not re.search(rf"(?<![\w.]){re.escape(slip.field)}(?!\w)", given.text):
        yield f"does not name {slip.field}"
    if slip.line and f"job.yaml:{_number(slip)}:" not in given.text:
        yield f"does not point to line {_number(slip)}"


def _ask(command: str, path: Path) -> Answer:
    stream = io.StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        try:
            code = app(["--cloud", "aws", command, str(path)], standalone_mode=False) or DONE
        except SagefitError as error:
            print_error(error)
            code = error.exit_code
        except typer.Exit as done:
            code = done.exit_code
    return Answer(code, stream.getvalue())


def _plain(text: str) -> str:
    """Without line ends, which a width decides, and capitals."""
    return " ".join(text.casefold().split())


def _number(slip: Slip) -> int:
    """The one line of the file that the slip's ``line`` is in."""
    found = [number for number, line in enumerate(slip.text.split("\n"), 1) if slip.line in line]
    assert len(found) == 1, f"{slip.slip}: {slip.line!r} is in the lines {found}"
    return found[0]


@cache
def _base(name: str) -> str:
    return (HERE / "bases" / f"{name}.yaml").read_text("utf-8")


def _blocks(text: str) -> list[str]:
    """The fields at the top, each with what is indented below."""
    return [block for block in _BLOCK.split(text) if block]


def _name(block: str) -> str:
    return block.partition(":")[0].strip()
