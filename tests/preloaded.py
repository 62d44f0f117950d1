"""Runs commands of ``sagefit``, and embedded clouds, in forks of a process that has imported what all of them import.

Most of what a short command takes is the import of libraries, and a session runs about a thousand commands; a cloud
takes seconds for it. A fork has them from the start. All else is the command's own, as in a process that is started
anew: arguments, environment, directory, session, standard streams, exit code, and the end of the interpreter.
``preloaded_server.py`` forks, and this file talks to it: as a module for the tests, and as a program that stands for
the command, so that whoever started it waits, reads and ends it as usual.

What was read of the environment while all this was imported cannot change any more. Commands with other such variables
are processes of their own. So must be whatever a test sends signals to, or looks for among the processes. All forks of
a session have the same seed of hashes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from sagefit.cloud import control
from sagefit.paths import ROOT

SOCKET = "PRELOADED_COMMANDS"  # where commands are asked for; part of what the tests leave in their environment
CLOUDS = "PRELOADED_CLOUDS"  # the same of embedded clouds
READ_BEFORE = ("HOME", "LANG", "LC_", "LD_", "MALLOC_", "PSUTIL_", "PYDANTIC_", "PYTHON", "TYPER_", "_PYTHON")
_COVERAGE = "COV"  # it measures a process from its beginning
_SERVER = Path(__file__).with_name("preloaded_server.py")
_COMMAND = "sagefit"
_CLOUD = "sagefit_cloud.server"
_STARTED = ("-m", _COMMAND)
_WAITING = 32  # commands
_ENDING = 5  # seconds
_UNTIL = pytest.StashKey[contextlib.ExitStack]()

# What is handed over of an embedded cloud is the listening socket, too.
ASKS = """
import json, os, socket, sys
place, *arguments = sys.argv[1:]
handed = [0, 1, 2]
if "--fd" in arguments:
    handed.append(int(arguments[arguments.index("--fd") + 1]))
asks = socket.socket(socket.AF_UNIX)
asks.connect(place)
request = dict(arguments=arguments, cwd=os.getcwd(), environment=dict(os.environ), descriptors=handed)
request = json.dumps(dict(request, leads=os.getsid(0) == os.getpid())).encode()
socket.send_fds(asks, [len(request).to_bytes(8, "big")], handed)
asks.sendall(request)
code = int(asks.makefile().readline() or 70)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""
# An embedded cloud is asked for by processes that do not know its environment before.
ASKS_IF_THE_SAME = f"""
import json, os, sys
read_before, expected = json.loads(sys.argv.pop(1))
read = dict((name, value) for name, value in os.environ.items() if name.startswith(tuple(read_before)))
if read != expected or any(name.startswith("{_COVERAGE}") for name in os.environ):
    os.execv(sys.executable, [sys.executable, "-m", "{_CLOUD}", *sys.argv[2:]])
{ASKS}"""


def program(environment: Mapping[str, str]) -> list[str]:
    """What Python has to run to be ``sagefit`` with that environment; its arguments follow."""
    place = os.environ.get(SOCKET)
    apart = _read_before(os.environ) != _read_before(environment)
    if not place or apart or any(name.startswith(_COVERAGE) for name in environment):
        return list(_STARTED)
    return ["-IS", "-c", ASKS, place]


def cloud() -> list[str]:
    """What Python has to run to be an embedded cloud; its arguments follow."""
    expected = json.dumps([READ_BEFORE, _read_before(_of_clouds())])
    return ["-IS", "-c", ASKS_IF_THE_SAME, expected, os.environ[CLOUDS]]


def _of_clouds() -> dict[str, str]:
    """The environment of embedded clouds, but for what is each one's own."""
    return control._server_environment(0)


def _read_before(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_BEFORE)}


def is_fork(process: psutil.Process) -> bool:
    """Whether a process is a server's fork, or the server itself, which has the same command line."""
    try:
        return str(_SERVER) in process.cmdline()
    except psutil.Error:  # it has ended, or is somebody else's
        return False


@contextlib.contextmanager
def server(name: str = _COMMAND, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[tuple[str, int]]:
    """A server of a program; yields the socket on which it listens, and its process."""
    with tempfile.TemporaryDirectory(prefix="preloaded-") as folder, socket.socket(socket.AF_UNIX) as listening:
        place, number = str(Path(folder) / "s"), listening.fileno()
        listening.bind(place)
        listening.listen(_WAITING)  # commands may come before the server has imported all
        command = [sys.executable, str(_SERVER), str(number), name, *arguments]
        # It ends with its standard input, whatever happens to this process.
        with subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, pass_fds=[number]) as process:
            yield place, process.pid
            process.communicate()


def pytest_configure(config: pytest.Config) -> None:
    """Start them, for this process and those of pytest-xdist, which inherit their places."""
    if not hasattr(config, "workerinput") and SOCKET not in os.environ and hasattr(os, "pidfd_open"):
        until = config.stash[_UNTIL] = contextlib.ExitStack()
        os.environ[CLOUDS], _ = until.enter_context(server(_CLOUD, env=_of_clouds()))
        os.environ[SOCKET], _ = until.enter_context(server(_COMMAND, *cloud()))
    if CLOUDS in os.environ:
        control._PROGRAM[:] = cloud()


@pytest.hookimpl(trylast=True)  # when fixtures and workers have ended; leftovers.py comes later, and judges then
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End them."""
    pytest_unconfigure(session.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End them where the session has not begun, too."""
    for asking in control._servers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            asking.wait(_ENDING)  # its cloud has ended
    if until := config.stash.get(_UNTIL, None):
        for place in (SOCKET, CLOUDS):
            os.environ.pop(place, None)
        until.close()
