"""JSON documents inside of other documents, and values that a plan does not know yet."""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 150
"""Levels of objects and lists. Those of a real plan stay below 40."""


class _Unknown:
    """A value that will be known only after apply. It counts as a value that is present."""

    def __repr__(self) -> str:
        return "(known after apply)"


UNKNOWN: Any = _Unknown()


def parsed(value: Any) -> Any:
    """``value``; or the object or list of a JSON string, if it is not deeper than a plan may be."""
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) > 1:
        try:
            inside = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return value if deeper(inside, MAX_DEPTH) else inside
    return value


def as_list(value: Any) -> list[Any]:
    """What policies and blocks write either alone or as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def deeper(data: Any, levels: int) -> bool:
    """Whether objects and lists are nested deeper than that. No recursion: a deep value would exhaust the stack."""
    layer = [data] if isinstance(data, dict | list) else []
    for _ in range(levels):
        layer = [
            child
            for node in layer
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return True
