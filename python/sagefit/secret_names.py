"""Names of attributes and hyperparameters in a plan that say their value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret(?!s?_?manager|s?manager|s?_?arn|_?id$|_?name$|version)|token(?!s|iz)|"
    r"private_?key|access_?key(?!_?id$)|api_?key|credential|connection_?string|auth_?key|user_?data(?!_replace)",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(
    r"(^|[._-])(num|max|min|total|pad|eos|bos|unk|sep|cls|mask)[._-]?.*token|token.*(per|limit|count|ttl|type|hop)|"
    r"http_tokens|manage_master|recovery_window|rotation|_arns?$|_wo_version$",
    re.IGNORECASE,
)
_PIECES = ("passw", "passphrase", "secret", "token", "key", "credential", "connection", "user_data", "userdata")


def may_name_a_secret(text: str) -> bool:
    """Whether the full check is worth its time: the full pattern is slow on long texts."""
    lower = text.lower()
    return any(word in lower for word in _PIECES)


@lru_cache(maxsize=65536)
def is_secret_name(name: str) -> bool:
    """Whether something of this name holds a secret, marked or not."""
    return bool(_SECRET_NAME.search(name)) and not _NOT_SECRET.search(name)
