"""The access keys of an embedded cloud: new with every start, and known to nobody but its owner and its jobs."""

from __future__ import annotations

import secrets
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
