"""Untrusted text in Markdown: whatever it holds, it stays text, mentions no user and closes nothing."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

# Control characters, and those that turn the direction of writing or have no width: they hide what is there.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """``text`` with names in place of characters that nobody can see."""
    return _INVISIBLE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text.replace("\r\n", "\n"))


def cell(text: object) -> str:
    """A code span for a table, whose cells end at a bar even in code."""
    return code(text).replace("|", "\\|")


def code(text: object) -> str:
    """A code span on one line: in it Markdown and HTML are letters."""
    shown = visible(str(text)).replace("\n", "⏎").replace("\t", " ")
    if not shown.strip():
        return "`(empty)`" if not shown else f"` {shown} `"
    fence = "`" * (_longest(shown, "`") + 1)
    edge = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{edge}{shown}{edge}{fence}"


def block(lines: Iterable[str], language: str = "diff") -> str:
    """A fenced block, whose fence is longer than any in it."""
    text = visible("\n".join(lines))
    fence = "`" * max(3, _longest(text, "`") + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def summary(text: str) -> str:
    """Text for a ``<summary>``, where Markdown is not read and HTML is."""
    return re.sub(
        r"([@#`*_~\[\]|])", lambda found: f"&#{ord(found[0])};", html.escape(visible(text)).replace("\n", " ")
    )


def marker(text: str) -> str:
    """A word for a hidden comment: nothing that could end it."""
    return re.sub(r"[^A-Za-z0-9._/:+-]|-(?=-)", "_", text)[:200] or "-"


def _longest(text: str, mark: str) -> int:
    return max(map(len, re.findall(f"{mark}+", text)), default=0)
