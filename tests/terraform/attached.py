"""Providers that Terraform does not start itself, and that tell it only what this checkout uses.

Every Terraform command asks the AWS provider for its schema: 2,100 types, 5 MB, of which a stack uses thirty. That
takes three of the four processor seconds of a small plan, and all of ``show -json``. So in the tests a server stands
between the two (``attached_server.py``). It answers this one question, with the schemas of the types whose names stand
in the checkout. All other questions it hands on, as they are, to a real provider, and the answers back.

Terraform connects to it in the way that developers of a provider debug one
(https://developer.hashicorp.com/terraform/plugin/debugging#enabling-debugging-in-a-provider). Nothing is shared between
commands: each has a provider of its own, started when it is first asked, with the environment and in the directory of
that command, and ended with it.

What Terraform leaves out with such a provider, the level ``full`` shows, where Terraform starts its providers itself:
``init`` installs none, and there is no lock file of providers, nor a check of their versions and digests.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REATTACH = "TF_REATTACH_PROVIDERS"  # Terraform's variable
SOCKET = "ATTACHED_PROVIDERS"  # where commands ask for a provider
ITSELF = {SOCKET: ""}  # in the environment of a command, whose Terraform then starts its provider itself
_WAITING = 32  # commands


@contextlib.contextmanager
def providers() -> Iterator[None]:
    """Serve the Terraform commands of this process and its children, which find the way in their environment."""
    if os.environ.get(SOCKET):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="attached-") as folder, socket.socket(socket.AF_UNIX) as listening:
        place = str(Path(folder) / "s")
        listening.bind(place)
        listening.listen(_WAITING)  # commands may come before the server is there
        number = listening.fileno()
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "terraform.attached_server", str(number)]
        # It ends with its standard input, whatever happens to this process.
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, pass_fds=[number]) as server:
            os.environ[SOCKET] = place
            try:
                yield
            finally:
                del os.environ[SOCKET]
                server.communicate()
