"""What became of a case."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["as expected", "differs", "not seen", "not run", "failed"]
BAD: tuple[Status, ...] = ("differs", "failed")


@dataclass(frozen=True)
class Result:
    """What became of a case.

    ``not seen``: it ran, and what it is for did not happen. ``not run``: the account or the limit does not allow it.
    ``failed``: it could not be carried out. ``usd`` is None where it is not known; ``file`` is what was written of it.
    """

    case: str
    status: Status
    why: str = ""
    seconds: float = 0.0
    usd: float | None = None
    file: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether somebody has to look at it."""
        return self.status in BAD

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"seconds": round(self.seconds, 1)}
