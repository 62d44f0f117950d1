"""Counts how often Terraform is started, which costs most of what a run of the tests does, and prints it at the end.

Most of that cost is the provider's schema, so the tests have attached providers (``terraform/attached.py``); not with
``--provider started``, nor where ``attached.ITSELF`` is in a command's environment. In the level ``fast`` no test may
start Terraform.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sagefit.errors import SagefitError
from sagefit.paths import home
from sagefit.toolchain import terraform_binary
from terraform import attached, in_path

ATTACHED, STARTED = "attached", "started"


@dataclass
class Starts:
    """What a session has for it, and the commands, which are known at its end."""

    until: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    written: Path = Path(os.devnull)
    commands: list[str] = field(default_factory=list)


_STARTS = pytest.StashKey[Starts]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of this file."""
    words = f"Terraform's provider: {ATTACHED}, which is quick, or {STARTED} by Terraform, as users have it"
    parser.getgroup("levels").addoption("--provider", choices=(ATTACHED, STARTED), default=ATTACHED, help=words)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put a ``terraform`` into ``PATH``, which the processes of pytest-xdist inherit."""
    if hasattr(config, "workerinput"):
        return
    try:
        terraform = terraform_binary(home())
    except SagefitError:  # tests say so themselves
        return
    starts = config.stash[_STARTS] = Starts()
    if config.getoption("level") == "fast":
        starts.until.enter_context(in_path.refusing())
        return
    if config.getoption("provider") == ATTACHED:
        starts.until.enter_context(attached.providers())
    starts.written = starts.until.enter_context(in_path.asking(terraform))


@pytest.hookimpl(trylast=True)  # when fixtures and workers have ended; leftovers.py comes later, and judges then
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Take all of it away."""
    if starts := session.config.stash.get(_STARTS, None):
        starts.commands = starts.written.read_text(encoding="utf-8").split() if starts.written.exists() else []
        starts.until.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how often it was started, and with which commands."""
    starts = config.stash.get(_STARTS, None)
    if starts and (counts := Counter(starts.commands)):
        told = ", ".join(f"{count} {command}" for command, count in counts.most_common())
        terminalreporter.write_line(f"Terraform was started {counts.total()} times: {told}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Do so where the session has not begun, too."""
    if starts := config.stash.get(_STARTS, None):
        starts.until.close()
