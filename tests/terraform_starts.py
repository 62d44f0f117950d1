"""Counts how often Terraform is started, which is what a run of the tests mostly waits for, and prints it at the end.

A ``terraform`` that stands first in ``PATH`` writes down its command and becomes the real one. In the level ``fast`` it
refuses instead, so that no test of that level starts Terraform unnoticed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from sagefit.errors import SagefitError
from sagefit.paths import home
from sagefit.toolchain import terraform_binary

_FOLDER = pytest.StashKey[Path]()
_RECORDS = """#!/bin/sh
# One write a line: it stays whole beside those of others.
for word in "$@"; do case $word in -*) ;; *) echo "$word" >> {starts}; break ;; esac; done
exec {terraform} "$@"
"""
_REFUSES = """#!/bin/sh
echo 'a test of the level fast starts Terraform: add its file to NOT_FAST in tests/levels.py' >&2
exit 70
"""


def pytest_configure(config: pytest.Config) -> None:
    """Put the counting ``terraform`` into ``PATH``, which the processes of pytest-xdist inherit."""
    if hasattr(config, "workerinput"):
        return
    try:
        terraform = terraform_binary(home())
    except SagefitError:  # tests say so themselves
        return
    folder = config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="terraform-"))
    text = _REFUSES if config.getoption("level") == "fast" else _RECORDS
    script = folder / "terraform"
    script.write_text(
        text.format(starts=shlex.quote(str(folder / "starts")), terraform=shlex.quote(str(terraform))), encoding="utf-8"
    )
    script.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how often it was started, and with which commands."""
    folder = config.stash.get(_FOLDER, None)
    if folder and (starts := folder / "starts").exists():
        counts = Counter(starts.read_text(encoding="utf-8").split())
        told = ", ".join(f"{count} {command}" for command, count in counts.most_common())
        terminalreporter.write_line(f"Terraform was started {counts.total()} times: {told}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the folder away."""
    if folder := config.stash.get(_FOLDER, None):
        shutil.rmtree(folder)
