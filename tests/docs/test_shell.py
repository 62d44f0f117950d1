"""Commands on the pages: all are understood, and those that change nothing are run and print what the page says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from cli_runner import Sagefit
from docs.pages import MADE, Block, all_blocks, pages, tokens
from docs.shell import Command, commands, make, understood
from sagefit.paths import ROOT

# Commands of Sagefit that ask nothing of AWS and write nothing outside its home, and the options without which they do.
READ_ONLY = {
    "size": set[str](),
    "render": {"--check", "--stdout"},
    "diagnose": {"--reason", "--log", "--exit-code", "--secondary-status"},
    "catalog show": set[str](),
}
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")


def runs(words: list[str]) -> bool:
    """Whether it can be run here: it changes nothing, and none of its words stands for something of the reader's."""
    needed = READ_ONLY.get(understood(words))
    return needed is not None and (not needed or bool(needed & set(words))) and not _PLACEHOLDER.search(" ".join(words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a reader has around: the folders of a checkout, and the log of a training job."""
    for name in ("jobs", "examples", "modules"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\nMemoryError\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(command: Command, folder: Path) -> None:
    """AssertionError unless it is understood and, where it can be run, prints what the page says."""
    if command.program == "make":
        for called in make([*(f"{name}={value}" for name, value in command.variables.items()), *command.words[1:]]):
            understood(called.words[1:])
        return
    assert command.program == "sagefit", f"{command.words[0]}: nobody runs it; say so in a comment before the block"
    words = command.words[1:]
    if not runs(words):
        understood(words)
        assert command.output is None, f"{' '.join(command.words)} is not run here, so nobody compares what it prints"
        return
    done = Sagefit(folder / "home")(*words, cwd=folder, check=None)
    assert done.code in (0, 3), done.err
    if command.output:
        same = doctest.OutputChecker().check_output(
            command.output + "\n", done.out, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        )
        assert same, done.out


@pytest.mark.parametrize("block", all_blocks("shell", "console"), ids=str)
def test_commands_are_understood_and_print_what_the_page_says(folder: Path, block: Block) -> None:
    found = list(commands(block.text))
    assert found, "no command in it"
    for command in found:
        check(command, folder)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("make no-such-target", "No rule to make target"),
        ("make size", "NAME is missing"),
        ("sagefit sizes quickstart", "No such command"),
        ("sagefit size --colour quickstart", "No such option"),
        ("sagefit render", "Missing argument"),
        ("sagefit cloud up --faults /nowhere/faults.yaml", "does not exist"),
        ("curl example.com", "nobody runs it"),
        ("$ sagefit runs quickstart\nsucceeded", "nobody compares"),
        ("$ sagefit render quickstart --stdout\nname = 1", "name        = "),
        ("sagefit size jobs/nowhere.yaml", "no job file"),
    ],
)
def test_a_command_that_is_wrong_is_found(folder: Path, text: str, says: str) -> None:
    (command,) = commands(text)
    with pytest.raises(AssertionError, match=re.escape(says)):
        check(command, folder)


def mentioned(page: Path) -> set[str]:
    """Commands in the text of a page, such as ``make job NAME=...``."""
    inline = [child for token in tokens(page) for child in token.children or [] if child.type == "code_inline"]
    return {child.content for child in inline if re.match(r"(make|sagefit) [a-z]", child.content)}


@pytest.mark.parametrize(
    "page", [page for page in pages() if page not in MADE], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_in_the_text_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for text in mentioned(page):
        program, *words = re.sub(r"\$\(.*", "", text).split()
        if program == "make":
            assert words[0] in targets, text
        else:
            exists(words)


def exists(words: list[str]) -> None:
    """AssertionError unless there is such a command and it has the options; arguments may be missing."""
    try:
        understood(words)
    except AssertionError as error:
        if type(error.__cause__).__name__ not in ("MissingParameter", "NoArgsIsHelpError"):
            raise
