"""References in a configuration, as OmegaConf has them: ``${train.batch}`` and ``${own_function:8,${train.batch}}``."""

from __future__ import annotations

import re
from collections.abc import Callable

import yaml

from sagefit.job.following.values import UNKNOWN, bare, literal

LookUp = Callable[[str, "list[object] | None"], object]
"""The value of a name; with a list, what the function of this name makes of it."""

_INNERMOST = re.compile(r"\$\{([^${}]*)\}")
_KEPT = re.compile("\0(\\d+)\0")
_MOST = 20


def interpolated(text: str, look_up: LookUp) -> object:
    """``text`` with the values of what it refers to; the value itself where the text is one reference.

    >>> values = {"batch": 32, "whole": 128}
    >>> look_up = lambda name, told: values[name] if told is None else told[0] // told[1]
    >>> interpolated("${div:${whole},${batch}}", look_up), interpolated("b${batch}", look_up)
    (4, 'b32')
    """
    found: list[object] = []

    def replaced(match: re.Match[str]) -> str:
        name, colon, rest = match[1].partition(":")
        told = [_value(each.strip(), found) for each in rest.split(",")] if colon else None
        found.append(look_up(name.strip(), told))
        return f"\0{len(found) - 1}\0"

    for _ in range(_MOST):
        text, changed = _INNERMOST.subn(replaced, text)
        if not changed:
            break
    whole = _KEPT.fullmatch(text)
    if whole:
        return found[int(whole[1])]
    if not all(literal(bare(each)) for each in found):
        return UNKNOWN
    return _KEPT.sub(lambda match: str(bare(found[int(match[1])])), text)


def _value(text: str, found: list[object]) -> object:
    whole = _KEPT.fullmatch(text)
    if whole:
        return found[int(whole[1])]
    try:
        return yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        return UNKNOWN
