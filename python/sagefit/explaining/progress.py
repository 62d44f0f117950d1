"""How far a script had come, by what its log says of steps and epochs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sagefit_launcher import log_lines

_OF = r"(?:\s*(?:/|of)\s*(?P<{0}>\d{{1,9}}))?"
_SAID = re.compile(
    r"(?<![\w-])(?P<kind>global[_ ]step|step|iteration|iter|epoch)[\"']?\s*[:=#\[(]?\s*(?P<at>\d{1,9})"
    + _OF.format("most")
    + r"(?![\w.]*\w)",
    re.IGNORECASE,
)
_BAR = re.compile(r"\d{1,3}%\|[^|]*\|\s*(?P<at>\d{1,9})/(?P<most>\d{1,9})\s*\[")
_KINDS = {"global_step": "step", "global step": "step", "iter": "step", "iteration": "step"}


def reached(logs: Mapping[str, Sequence[str]]) -> str:
    """The last step that any host's log names, in words: ``step 412 of 1000``; empty where none does.

    >>> reached({"algo-1": ["epoch 1 step 40/100 loss 0.3", "Traceback (most recent call last):"]})
    'epoch 1, step 40 of 100'
    """
    found = [said for lines in logs.values() if (said := _last(lines))]
    return max(found, key=_order, default="")


def _last(lines: Sequence[str]) -> str:
    for line in reversed(lines):
        text = log_lines.plain(line)
        parts = [
            _words(_KINDS.get(match["kind"].lower(), match["kind"].lower()), match) for match in _SAID.finditer(text)
        ]
        parts += [_words("step", match) for match in list(_BAR.finditer(text))[-1:]]
        if parts:
            return ", ".join(dict.fromkeys(parts))
    return ""


def _words(kind: str, match: re.Match[str]) -> str:
    return f"{kind} {match['at']}" + (f" of {match['most']}" if match["most"] else "")


def _order(said: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\w (\d+)", said))
