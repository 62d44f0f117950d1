"""Forks commands of ``sagefit``; ``preloaded.py`` says why."""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from typing import Any

LIBRARIES = ("boto3", "botocore.args", "pydantic", "rich.console", "rich.progress", "rich.table", "typer", "yaml")
ROOMS = ("sagefit.cloud.control", "sagefit.failures", "sagefit.job", "sagefit.machine", "sagefit.planning")
NOT_BEFORE = "sagefit.console"  # it looks at the standard streams, and at NO_COLOR and COLUMNS
_GONE = 0
_LENGTH = 8  # bytes of the length of a request
_STREAMS = 3


def serve(listening: socket.socket) -> None:
    """Fork for every command that comes, until standard input ends; comes back in the forks alone."""
    for name in (*LIBRARIES, *ROOMS):
        importlib.import_module(name)
    if NOT_BEFORE in sys.modules:
        raise ImportError(f"{NOT_BEFORE} must not be imported before a command has its streams and its environment")
    gc.collect()
    gc.freeze()  # so that forks do not copy what they only read
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            os._exit(_GONE)
        connection, _ = listening.accept()
        if not os.fork():
            listening.close()
            return _attend(connection)
        connection.close()


def _attend(connection: socket.socket) -> None:
    """Fork the command, wait for its end and tell it; comes back in the command alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(connection, _LENGTH, _STREAMS)
    with connection.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(length, "big")))
    command = os.fork()
    if not command:
        connection.close()
        return _become(request, streams)
    for stream in streams:
        os.close(stream)
    ready, _, _ = select.select([os.pidfd_open(command), connection.fileno()], [], [])
    if connection.fileno() in ready:  # whoever asked is gone
        os.kill(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(_GONE)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    time.tzset()
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.path[0] = request["cwd"]
    sys.argv[1:] = request["arguments"]


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("sagefit", run_name="__main__", alter_sys=True)
