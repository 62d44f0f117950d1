"""What one look found: a line for people, with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "fault", "unknown"]


@dataclass(frozen=True)
class Finding:
    """How one thing is before an apply.

    ``check`` names what was looked at, ``message`` says how it is in one line, and ``fix`` what to do. ``unknown``
    means that it could not be asked, and ``fix`` says what would let it.
    """

    check: str
    state: State
    message: str
    fix: str = ""
