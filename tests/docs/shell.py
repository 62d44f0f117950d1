"""Commands in the blocks and the lines of a page: which there are, and whether they would be understood."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.main import get_command

from sagefit.cli import app
from sagefit.paths import ROOT

_PROGRAM = re.compile(
    r"^(?:\$ +)?(?:\w+=\S* +)*((?:\.venv/bin/)?(?:sagefit|make|terraform|python3?|pip|aws|git))(?=\s|$)", re.M
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Command:
    """A command: its variables, its words, and what the page says that it prints (None where it says nothing)."""

    variables: dict[str, str]
    words: list[str]
    output: str | None = None

    @property
    def program(self) -> str:
        """Its name without the folder."""
        return self.words[0].rpartition("/")[2]


def programs(text: str) -> list[str]:
    """The programs that lines of a text begin with, if it holds commands of ours."""
    return sorted(set(_PROGRAM.findall(text)))


def commands(text: str) -> Iterator[Command]:
    """The commands of a block, one a line unless a backslash ends it; with ``$`` before them, what they print too."""
    lines = text.replace("\\\n", " ").splitlines()
    if not any(line.startswith("$ ") for line in lines):
        for line in lines:
            if words := shlex.split(line, comments=True):
                yield command(words)
        return
    prompts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
    for index, end in zip(prompts, [*prompts[1:], len(lines)], strict=True):
        printed = "\n".join(lines[index + 1 : end]).strip()
        yield command(shlex.split(lines[index][2:], comments=True), printed or None)


def command(words: list[str], output: str | None = None) -> Command:
    """Words as a shell reads them: assignments first."""
    count = next((index for index, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    return Command(dict(word.split("=", 1) for word in words[:count]), words[count:], output)


def make(words: list[str]) -> list[Command]:
    """What ``make`` would call of Sagefit for these arguments; AssertionError where it would refuse them."""
    done = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    given = command(words).variables | dict(word.split("=", 1) for word in words if _ASSIGNMENT.match(word))
    lines = [line for line in done.stdout.splitlines() if re.match(r"(\w+=\S+ )*\S*bin/sagefit ", line)]
    return [command([re.sub(r"\$(\w+)", lambda m: given.get(m[1], ""), w) for w in shlex.split(x)]) for x in lines]


def understood(words: list[str]) -> str:
    """The command that Sagefit's command line makes of these words, such as ``cloud up``; nothing is run.

    Raises AssertionError for an unknown command or option, and for an argument that is missing.
    """
    interface: Any = get_command(app)
    name, parent, path = "sagefit", None, list[str]()
    while True:
        try:
            context = interface.make_context(name, words, parent=parent)
            if not hasattr(interface, "resolve_command"):
                return " ".join(path)
            name, interface, words = interface.resolve_command(context, [*context._protected_args, *context.args])
        except Exception as error:
            says = getattr(error, "format_message", error.__str__)()
            raise AssertionError(f"sagefit {' '.join([*path, *words])}: {says}") from error
        parent = context
        path.append(name)
