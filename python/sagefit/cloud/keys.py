"""The access keys of an embedded cloud: new with every start, and known to nobody but its owner and its jobs."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Key:
    """An access key, as AWS calls it.

    Whoever knows ``id`` is let in: signatures are not checked, so here the id too has 128 random bits.
    """

    id: str
    secret: str = field(repr=False)


def new_key() -> Key:
    """A key that nobody can guess."""
    return Key(f"SAGEFIT{secrets.token_hex(16).upper()}", secrets.token_urlsafe(30))


class RoleKeys:
    """One key for each execution role: what its containers ask with, and what moves their data."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._roles: dict[str, str] = {}
        self._lock = threading.Lock()

    def of(self, role: str) -> Key:
        """The key of a role, by its ARN; made when it is first asked for."""
        with self._lock:
            if role not in self._keys:
                key = self._keys[role] = new_key()
                self._roles[key.id] = role
            return self._keys[role]

    def role(self, key_id: str | None) -> str | None:
        """The ARN of the role that a key is of; None for any other key."""
        return self._roles.get(key_id or "")
