"""One spelling for the names of hyperparameters and arguments."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """``name`` in lower case, with _ for -."""
    return name.lower().replace("-", "_")
