"""The lock of a state, which Terraform keeps beside it: who holds it, and whether that one is gone.

A lock has no process in it, only a user, a machine and a time. So it is taken for left behind only where all of this
holds: it was made by this user on this machine, while a Terraform of ours was at work on this very stack; that
Terraform has ended without giving it back; and no other Terraform runs here that may have made it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import psutil

from sagefit.processes import running
from sagefit.terraform.at_work import Begun

_FIELD = re.compile(r"^\s*(ID|Operation|Who|Created):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{1,6})?\d* \+0000 UTC")
_SLACK = 1.0  # seconds; a start time is reckoned in hundredths


@dataclass(frozen=True)
class StateLock:
    """What Terraform says of a lock that it did not get."""

    id: str
    operation: str
    who: str
    created: datetime

    def __str__(self) -> str:
        return f"{self.who} since {self.created:%Y-%m-%d %H:%M:%S} UTC, for {self.operation}"

    @classmethod
    def of(cls, said: str) -> StateLock | None:
        """The lock that an error of Terraform is about, if it is about one."""
        found = dict(_FIELD.findall(said))
        when = _TIME.match(found.get("Created", ""))
        if not when or not found.get("ID"):
            return None
        created = datetime.strptime(f"{when[1]}{when[2] or '.0'}", "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=timezone.utc)
        operation = found.get("Operation", "").removeprefix("OperationType").lower()
        return cls(found["ID"], operation, found.get("Who", ""), created)

    def why_not_ours(self, begun: Iterable[Begun], key: str, root: Path) -> str | None:
        """Why it may not be taken for one that a Terraform of ours has left; None where it may.

        Args:
            begun: The Terraform commands of this stack that did not end well.
            key: The stack.
            root: Its root module.
        """
        if self.who != _me():
            return f"it is held by {self.who}, and this is {_me()}"
        made = self.created.timestamp()
        dead = [each for each in begun if each.ended or not each.process.process()]
        if not any(each.process.started - _SLACK <= made <= (each.ended or time.time()) + _SLACK for each in dead):
            return "no Terraform that was started here, and is gone, was at work when it was made"
        if other := _another(None if any(each.process.clock_was_set() for each in dead) else made, key, root):
            return f"another Terraform (process {other.pid}) is at work on it here"
        return None


def _another(made: float | None, key: str, root: Path) -> psutil.Process | None:
    """A Terraform that was there when a lock was made: of another checkout for the same stack, or started by hand.

    Without ``made``, as after the clock was set, it may be one that was started since.
    """
    for process in running():
        with contextlib.suppress(psutil.Error, OSError):  # it has ended, or is somebody else's: not of this user
            if process.name() == "terraform" and (made is None or process.create_time() <= made + _SLACK):
                folder = process.environ().get("TF_DATA_DIR", "")
                if folder.endswith(f"/{key}") or (not folder and process.cwd() == str(root)):
                    return process
    return None


def _me() -> str:
    """This user and machine, in the words of Terraform; some containers have a user without a name."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = os.environ.get("USER", "")
    return f"{user}@{socket.gethostname()}"
