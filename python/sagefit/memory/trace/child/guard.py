"""Limits for the user's function while it is traced: no network, and no life beyond the process that started it."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
from typing import Any

MESSAGE = "network access is closed while a model is traced"
_FILE_BYTES = 1024**3
_CLOSED = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"}
_LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


def enclose(memory_bytes: int) -> None:
    """Close the network inside this process, limit memory and files, and end when standard input ends."""
    sys.addaudithook(_refuse_network)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _limit(resource.RLIMIT_DATA, memory_bytes)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse the network by an audit hook (PEP 578), which nobody can remove. Local sockets (AF_UNIX) stay allowed."""
    if event in _LOOKUPS or (event in _CLOSED and getattr(arguments[0], "family", None) != socket.AF_UNIX):
        raise PermissionError(MESSAGE)


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (wanted, hard))


def _end_with_parent() -> None:
    """End with the parent, which holds the other end of standard input: when that closes, the parent has ended."""
    while os.read(0, 1):
        pass
    if os.getpgrp() == os.getpid():  # and not somebody else's group, when started by hand
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)
