"""Forks commands of ``sagefit``, or embedded clouds; ``preloaded.py`` says why."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import importlib
import itertools
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
import time
from typing import Any

from botocore.loaders import JSONFileLoader, Loader

_SERVICES = ("ecr", "events", "iam", "logs", "s3", "sagemaker", "sns", "sqs", "ssm", "stepfunctions", "sts")
#: Of each program what is imported before it is forked.
MODULES = {
    "sagefit": (
        *("boto3", "botocore.args", "pydantic", "rich.console", "rich.progress", "rich.table", "typer", "yaml"),
        *("sagefit.cloud.control", "sagefit.failures", "sagefit.job", "sagefit.machine", "sagefit.planning"),
    ),
    "sagefit_cloud.server": (
        *("boto3", "botocore.args", "moto.moto_server.werkzeug_app", "werkzeug.serving"),
        *("moto.ec2.models", "moto.stepfunctions.parser.asl.parse.asl_parser"),
        *(f"moto.{service}.{what}" for service in _SERVICES for what in ("models", "responses")),
        *("sagefit.cloud.faults", "sagefit.cloud.record", "sagefit.job"),
    ),
}
# The console looks at the standard streams, and at NO_COLOR and COLUMNS; a cloud makes its keys.
NOT_BEFORE = ("sagefit.console", "sagefit_cloud")
_GONE = 0
_LENGTH = 8  # bytes of the length of a request
_MOST = 8  # descriptors that are handed over
_ABOVE = 100  # numbers that no descriptor has that is handed over


def serve(listening: socket.socket, program: str, *cloud: str) -> None:
    """Fork for every command that comes, until standard input ends; comes back in the forks alone.

    ``cloud`` is what Python runs in them to be an embedded cloud, instead of what it would run.
    """
    for name in MODULES[program]:
        importlib.import_module(name)
    _read_models()
    if cloud:
        sys.modules["sagefit.cloud.control"]._PROGRAM[:] = cloud
    if early := [name for name in NOT_BEFORE if name in sys.modules]:
        raise ImportError(f"{early} must not be imported before a command has its streams and its environment")
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


def _read_models() -> None:
    """Read what botocore knows of the services: a client reads it anew, a tenth of a second for the larger ones."""
    read = functools.cache(JSONFileLoader().load_file)
    JSONFileLoader.load_file = staticmethod(read)  # type: ignore[method-assign]
    models = Loader()
    for name in ("endpoints", "partitions", "sdk-default-configuration", "_retry"):
        models.load_data(name)
    for service, kind in itertools.product(_SERVICES, ("service-2", "endpoint-rule-set-1")):
        models.load_service_model(service, kind)


def _attend(connection: socket.socket) -> None:
    """Fork the command, wait for its end and tell it; comes back in the command alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, handed, _, _ = socket.recv_fds(connection, _LENGTH, _MOST)
    with connection.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(length, "big")))
    command = os.fork()
    if not command:
        connection.close()
        return _become(request, handed)
    for number in handed:
        os.close(number)
    ready, _, _ = select.select([os.pidfd_open(command), connection.fileno()], [], [])
    if connection.fileno() in ready:  # whoever asked is gone
        os.kill(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(_GONE)


def _become(request: dict[str, Any], handed: list[int]) -> None:
    if request["leads"]:
        os.setsid()
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD, _ABOVE) for number in handed]
    for number, place in zip(moved, request["descriptors"], strict=True):
        os.dup2(number, place)
    for number in (*handed, *moved):
        if number not in request["descriptors"]:
            os.close(number)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    time.tzset()
    random.seed()
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.path[0] = request["cwd"]
    sys.argv[1:] = request["arguments"]


if __name__ == "__main__":
    socket_number, name, *other = sys.argv[1:]
    serve(socket.socket(fileno=int(socket_number)), name, *other)
    runpy.run_module(name, run_name="__main__", alter_sys=True)
