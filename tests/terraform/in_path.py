"""A ``terraform`` that stands first in ``PATH``, and becomes the real one."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from terraform import attached

_ASKS = """#!{python} -IS
import json, os, socket, sys
words, environment = sys.argv[1:], dict(os.environ)
command = next((word for word in words if not word.startswith("-")), None)
if command:
    with open({starts!r}, "a") as starts:  # one write: it stays whole beside those of others
        starts.write(command + "\\n")
place = environment.get({socket!r})
if place and command not in ("version", "fmt") and {reattach!r} not in environment:
    chosen = [word.partition("=")[2] for word in words if word.startswith("-chdir=")]
    asks = socket.socket(socket.AF_UNIX)
    asks.connect(place)
    with asks.makefile("rw") as line:
        line.write(json.dumps(dict(environment=environment, directory=os.path.join(os.getcwd(), *chosen))) + "\\n")
        line.flush()
        environment[{reattach!r}] = line.readline().strip() or sys.exit("no provider is attached: see above")
    asks.set_inheritable(True)  # Terraform keeps it open, and with it the provider, up to its end
    asks.detach()
os.execve({terraform!r}, [{terraform!r}, *words], environment)
"""
_REFUSES = """#!/bin/sh
echo 'a test of the level fast starts Terraform: add its file to NOT_FAST in tests/levels.py' >&2
exit 70
"""


@contextlib.contextmanager
def asking(terraform: Path) -> Iterator[Path]:
    """One that asks for an attached provider, where there are some; yields the file to which it adds its commands."""
    with _first() as folder:
        values = {"terraform": str(terraform), "starts": str(folder / "starts"), "python": sys.executable}
        _write(folder, _ASKS.format(**values, socket=attached.SOCKET, reattach=attached.REATTACH))
        yield folder / "starts"


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """One that only refuses, for tests that must not need it."""
    with _first() as folder:
        _write(folder, _REFUSES)
        yield


@contextlib.contextmanager
def _first() -> Iterator[Path]:
    before = os.environ["PATH"]
    with tempfile.TemporaryDirectory(prefix="terraform-") as folder:
        os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
        try:
            yield Path(folder)
        finally:
            os.environ["PATH"] = before


def _write(folder: Path, text: str) -> None:
    script = folder / "terraform"
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
