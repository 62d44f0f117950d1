"""One ground for all files here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interruptions.ground import Ground


@pytest.fixture(scope="package")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """An embedded cloud behind a gate, and checkouts with a small root."""
    with Ground.prepared(tmp_path_factory.mktemp("ground")) as prepared:
        yield prepared


@pytest.fixture
def mortal_ground(ground: Ground, tmp_path: Path) -> Iterator[Ground]:
    """The same checkouts, with a cloud that may be killed."""
    with Ground.prepared(tmp_path, trees=ground.trees) as prepared:
        yield prepared


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what became of each cell of the matrix, where these tests alone were asked for."""
    rows = {
        tuple(value)
        for report in terminalreporter.getreports("passed")
        if report.when == "call"
        for name, value in report.user_properties
        if name == "cell"
    }
    if not rows:
        return
    table = [("struck by", "at", "state", "exit code", "then"), *sorted(rows)]
    widths = [max(len(row[column]) for row in table) for column in range(5)]
    terminalreporter.section("strikes")
    for row in table:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line(line.rstrip())
