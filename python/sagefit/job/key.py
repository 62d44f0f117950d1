"""A field of a job file: its path, how people write it, and where it stands in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Key = tuple[str | int, ...]


class Lines(dict[Key, int]):
    """The line (from 1) of every key, and the text there.

    ``texts`` are the values that are text. ``plain`` is the source text of each value without quotes: after YAML has
    converted ``2.10`` or ``yes``, the value no longer shows it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[Key, str] = {}
        self.plain: dict[Key, str] = {}
        self._older: dict[Key, str] = {}

    def rename(self, names: Mapping[str, str], within: str) -> None:
        """Make keys below ``within`` available under their newer names, too."""
        for key in self:
            if key[0] == within and isinstance(key[-1], str) and key[-1] in names:
                self._older[(*key[:-1], names[key[-1]])] = key[-1]
        tables: tuple[dict[Key, Any], ...] = (self, self.texts, self.plain)
        for table in tables:
            found = [key for key in table if key[0] == within and key[-1] in names]
            table.update({(*key[:-1], names[str(key[-1])]): table[key] for key in found})

    def spelt(self, key: Key) -> Key:
        """``key`` with the name that the file has for it."""
        return (*key[:-1], self._older[key]) if key in self._older else key

    def of(self, key: Key) -> int | None:
        """The line of ``key`` or of the nearest thing around it."""
        while key:
            if key in self:
                return self[key]
            key = key[:-1]
        return None


def dotted(field: Key) -> str:
    """``field`` as people write it: ``attempts[0].name``."""
    text = ""
    for part in field:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the file"


def pattern_of(field: Key) -> str:
    """``field`` in the form of the tables: ``*`` replaces every index and the name of an input or a range.

    >>> pattern_of(("attempts", 0, "name")), pattern_of(("inputs", "train", "uri"))
    ('attempts.*.name', 'inputs.*.uri')
    """
    parts: list[str] = []
    for part in field:
        named = bool(parts) and parts[-1] in ("inputs", "ranges")
        parts.append("*" if isinstance(part, int) or named else str(part))
    return ".".join(parts)
