"""Answers that may have been lost on their way: a client that tries a request again gets the one it did not see.

AWS clients repeat a request after a broken connection under the same invocation id. Where the first try was granted, a
second one would be refused, because what it asks for exists.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

from sagefit_cloud.throttling import INVOCATION

_MOST = 200  # answers that are kept
_LARGEST = 64 * 1024  # bytes of one


class Reply(NamedTuple):
    """A status line, headers and a body."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes


class Replies:
    """The last answers that granted a change."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Reply] = OrderedDict()
        self._lock = threading.Lock()

    def again(self, environ: dict[str, Any]) -> Reply | None:
        """What an earlier try of this request was answered."""
        with self._lock:
            return self._kept.get(environ.get(INVOCATION, ""))

    def keep(self, environ: dict[str, Any], reply: Reply) -> None:
        """Remember an answer, for as long as a client might still ask again."""
        invocation = environ.get(INVOCATION)
        if invocation and len(reply.body) <= _LARGEST:
            with self._lock:
                self._kept[invocation] = reply
                if len(self._kept) > _MOST:
                    self._kept.popitem(last=False)
