"""What is said about a plan: our words, with values of the plan in places that are cleaned before they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Message:
    """``words`` with ``{}`` for each of ``values``, which come from the plan and may hold anything."""

    words: str
    values: tuple[Any, ...] = ()

    def text(self, clean: Callable[[Any], str]) -> str:
        """The sentence, with every value as ``clean`` shows it."""
        return self.words.format(*map(clean, self.values))


def say(words: str, *values: Any) -> Message:
    """A message; ``words`` are ours and are never changed, ``values`` are the plan's."""
    return Message(words, values)
