"""The name that somebody meant: one way to find it, for all that the user can misspell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

_ALIKE = 0.75
_SHORT = 3
"""Fewer letters than that are part of too many names."""
_LONG = 256
"""No name has more letters, and to compare many with one that has takes seconds."""


def nearest(given: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The names among ``known`` that may have been meant, the likeliest first; none where no name is alike.

    Case and signs between words do not count. A name with a part left out or added is nearer than one with other
    letters: ``ml.m5.xlarge`` is nearer to ``m5.xlarge`` than ``ml.r5.xlarge`` is.

    >>> nearest("fp16", ["bf16", "fp16-mixed"]), nearest("Instance-Type", ["instance_type"]), nearest("x", ["y"])
    (['fp16-mixed'], ['instance_type'], [])
    """
    if len(given) > _LONG:
        return []
    scored = [(_likeness(given, name), name) for name in known]
    good = sorted((-score, -_same_start(given, name), name) for score, name in scored if score >= _ALIKE)
    return [name for _, _, name in good[:most]]


def did_you_mean(given: str, known: Iterable[str], otherwise: str, most: int = 1) -> str:
    """``did you mean X?``, or ``otherwise`` where no name is alike."""
    near = nearest(given, known, most)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def plain(name: str) -> str:
    """``name`` without case and signs between words: what is left is what people remember.

    >>> plain("MaxRuntimeInSeconds"), plain("max-runtime")
    ('maxruntimeinseconds', 'maxruntime')
    """
    return re.sub(r"[\W_]+", "", name.casefold())


def _likeness(given: str, name: str) -> float:
    """The likeness of two names from 0 to 1; 1 when they are equal but for case and signs."""
    one, other = plain(given), plain(name)
    if one == other:
        return 1.0
    ratio = max(SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in ((one, other), (other, one)))
    if sorted(one) == sorted(other):  # letters that changed places
        return max(ratio, 0.9)
    if _has_words_of(name, given) or _has_words_of(given, name):
        return max(ratio, 0.8 + ratio / 10)
    if len(one) >= _SHORT and other.startswith(one):  # a word that was cut off
        return max(ratio, 0.8)
    return ratio


def _has_words_of(longer: str, shorter: str) -> bool:
    """Whether the words of ``shorter`` stand one after another in ``longer``."""
    words = _words(shorter)
    joined = "".join(words)
    if len(joined) < _SHORT:
        return False
    among = _words(longer)
    return any(
        "".join(among[start:end]) == joined for start in range(len(among)) for end in range(start + 1, len(among) + 1)
    )


def _words(name: str) -> list[str]:
    """The words of snake_case, CamelCase, kebab-case and dotted names."""
    return [word.casefold() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def _same_start(given: str, name: str) -> int:
    """How many letters are the same from the start."""
    pairs = zip(plain(given), plain(name), strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(given), len(name)))
