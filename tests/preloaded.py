"""Runs commands of ``sagefit`` in forks of a process that has imported already what all of them import.

Most of what a short command takes is the import of libraries, and a session runs about a thousand commands. A fork has
them from the start. All else is the command's own, as in a process that is started anew: arguments, environment,
directory, standard streams, exit code, and the end of the interpreter. ``preloaded_server.py`` forks, and this file
talks to it: as a module for the tests, and as a program that stands for the command, so that whoever started it waits,
reads and ends it as usual.

What was read of the environment while all this was imported cannot change any more. Commands with other such variables
are started as processes of their own (`program`). So must be whatever a test sends signals to, or looks for among the
processes. All forks of a session have the same seed of hashes.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sagefit.paths import ROOT

SOCKET = "PRELOADED_COMMANDS"  # where commands are asked for; part of what the tests leave in their environment
READ_BEFORE = ("HOME", "LANG", "LC_", "LD_", "MALLOC_", "PSUTIL_", "PYDANTIC_", "PYTHON", "TYPER_", "_PYTHON")
_COVERAGE = "COV"  # it measures a process from its beginning
_SERVER = Path(__file__).with_name("preloaded_server.py")
_STARTED = ("-m", "sagefit")
_WAITING = 32  # commands
_UNTIL = pytest.StashKey[contextlib.ExitStack]()

ASKS = """
import json, os, socket, sys
place, *arguments = sys.argv[1:]
asks = socket.socket(socket.AF_UNIX)
asks.connect(place)
request = json.dumps(dict(arguments=arguments, cwd=os.getcwd(), environment=dict(os.environ))).encode()
socket.send_fds(asks, [len(request).to_bytes(8, "big")], [0, 1, 2])
asks.sendall(request)
code = int(asks.makefile().readline() or 70)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def program(environment: Mapping[str, str]) -> list[str]:
    """What Python has to run to be ``sagefit`` with that environment; its arguments follow."""
    place = os.environ.get(SOCKET)
    apart = _read_before(os.environ) != _read_before(environment)
    if not place or apart or any(name.startswith(_COVERAGE) for name in environment):
        return list(_STARTED)
    return ["-IS", "-c", ASKS, place]


def _read_before(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_BEFORE)}


@contextlib.contextmanager
def server() -> Iterator[tuple[str, int]]:
    """A server with the environment of this process; yields the socket on which it listens, and its process."""
    with tempfile.TemporaryDirectory(prefix="preloaded-") as folder, socket.socket(socket.AF_UNIX) as listening:
        place, number = str(Path(folder) / "s"), listening.fileno()
        listening.bind(place)
        listening.listen(_WAITING)  # commands may come before the server has imported all
        command = [sys.executable, str(_SERVER), str(number)]
        # It ends with its standard input, whatever happens to this process.
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[number]) as process:
            yield place, process.pid
            process.communicate()


def pytest_configure(config: pytest.Config) -> None:
    """Start it, for this process and those of pytest-xdist, which inherit its place."""
    if not hasattr(config, "workerinput") and SOCKET not in os.environ and hasattr(os, "pidfd_open"):
        config.stash[_UNTIL] = contextlib.ExitStack()
        os.environ[SOCKET], _ = config.stash[_UNTIL].enter_context(server())


@pytest.hookimpl(trylast=True)  # when fixtures and workers have ended; leftovers.py comes later, and judges then
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End it."""
    pytest_unconfigure(session.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End it where the session has not begun, too."""
    if until := config.stash.get(_UNTIL, None):
        os.environ.pop(SOCKET, None)
        until.close()
