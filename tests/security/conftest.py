"""A cloud of these tests' own, and a table of what was tried and what it came to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_runner import Sagefit
from cloud.aws_user import GRACE_SECONDS, Aws
from sagefit.cloud import control, record

_ATTACK = "attack"


@pytest.fixture(scope="session")
def cloud_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def _settle(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("SAGEFIT_HOME", str(home))
    patch.setenv("SAGEFIT_STOP_GRACE_SECONDS", str(GRACE_SECONDS))


@pytest.fixture(autouse=True)
def _at_home(cloud_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _settle(monkeypatch, cloud_home)


@pytest.fixture(scope="session")
def aws(cloud_home: Path) -> Iterator[Aws]:
    """The owner of a cloud."""
    with pytest.MonkeyPatch.context() as patch:
        _settle(patch, cloud_home)
        control.up()
        owner = Aws(control.environment())
    try:
        owner.prepare()
        yield owner
    finally:
        owner.close()
        with pytest.MonkeyPatch.context() as patch:
            _settle(patch, cloud_home)
            control.down()


@pytest.fixture(scope="session")
def sagefit(aws: Aws, cloud_home: Path) -> Sagefit:
    """The command line of the cloud's owner, with a platform."""
    assert aws.endpoint
    command = Sagefit(cloud_home, CLOUD="local")
    command("platform", "apply", "--yes")
    return command


@pytest.fixture
def me(aws: Aws) -> record.Record:
    """The record of that cloud."""
    found = record.load()
    assert found is not None
    assert found.endpoint == aws.endpoint
    return found


def note(request: pytest.FixtureRequest, attack: str, before: str, now: str) -> None:
    """A row of the table."""
    request.node.user_properties.append((_ATTACK, (attack, before, now)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table where these tests alone were asked for."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    rows = [
        value
        for report in reports
        if report.when == "call"
        for name, value in report.user_properties
        if name == _ATTACK
    ]
    if not rows:
        return
    rows = [("attack", "before", "now"), *sorted({tuple(row) for row in rows})]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    terminalreporter.section("attacks")
    for row in rows:
        terminalreporter.write_line(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
