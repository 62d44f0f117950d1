"""What several things do at once: a line for each change, or a table that moves on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from sagefit.cli import board

NAMES = ("dev/platform", "dev/jobs/digits")


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    """What is written while two things go on and one of them ends."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=60, color_system=None, _environ={"TERM": "xterm"})
    monkeypatch.setattr(board, "err", console)
    with board.Board(NAMES) as each:
        each.say("dev/platform", Text("planning"))
        each.say("dev/platform", Text("2 add, 0 change"))
        each.say("dev/jobs/digits", Text("planning"))
    return stream.getvalue()


def test_a_pipe_gets_a_line_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, terminal=False).splitlines() == [
        "dev/platform: planning",
        "dev/platform: 2 add, 0 change",
        "dev/jobs/digits: planning",
    ]


def test_a_terminal_gets_a_table_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, terminal=True)
    assert "dev/platform     2 add, 0 change" in text
    assert "dev/jobs/digits  planning" in text
    assert "\x1b[2K" in text[text.rindex("planning") :], "the table is wiped off in the end"
