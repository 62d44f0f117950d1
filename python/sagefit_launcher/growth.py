"""Tells steady growth from a step: host memory that is higher at each checkpoint, for as long as the script trains.

What a script needs for its data, its model or its first batch it takes once, however slowly. So memory is only compared
between checkpoints, where it has done the same work again, and each time at its lowest, which a burst does not change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

GIB = 1024**3
MOST = 200  # checkpoints that are remembered
LEAST = 6  # checkpoints: five times the same work, without what comes before the first
SHARE = 0.1  # of the limit: a leak that grew by less was not what filled the host
STRAIGHT = 0.9  # of the variance is on a straight line
STEADY = 0.5  # of the growth of the first half is in the second, too: a cache that fills grows less and less


class Growth(NamedTuple):
    """Growth of host memory in bytes from one checkpoint to the next, and over how many of them it was seen."""

    bytes_per_checkpoint: float
    checkpoints: int
    limit: int

    def __str__(self) -> str:
        return (
            f"host memory grew by {self.bytes_per_checkpoint / GIB:.3g} GiB from each checkpoint to the next, "
            f"{self.checkpoints - 1} times; twice the memory would last for {self.more:.0f} checkpoints more"
        )

    @property
    def more(self) -> float:
        """For how many checkpoints more a host with twice the memory would last."""
        return self.limit / self.bytes_per_checkpoint

    def as_json(self) -> dict[str, Any]:
        """For sagefit.json."""
        return {
            "bytes_per_checkpoint": round(self.bytes_per_checkpoint),
            "checkpoints": self.checkpoints,
            "more_checkpoints": round(self.more),
        }


class Floors:
    """The lowest host memory between one checkpoint and the next."""

    def __init__(self) -> None:
        self._floors: deque[int] = deque(maxlen=MOST)
        self._lowest: int | None = None
        self._last: float | None = None  # when the script last saved

    def add(self, used: int) -> None:
        """A sample."""
        self._lowest = used if self._lowest is None else min(self._lowest, used)

    def saved(self, at: float) -> None:
        """The script's last checkpoint is of this time; what is the same time as before changes nothing."""
        if self._last is not None and at <= self._last:
            return
        if self._last is not None and self._lowest is not None:  # what was before the first is no work done again
            self._floors.append(self._lowest)
        self._last, self._lowest = at, None

    def growth(self, limit: int | None) -> Growth | None:
        """What the floors show, if host memory grew steadily, and by enough to matter."""
        return find(list(self._floors), limit)


def find(floors: Sequence[int], limit: int | None) -> Growth | None:
    """The steady growth that a series of floors shows."""
    many = len(floors)
    if limit is None or many < LEAST - 1 or floors[-1] - floors[0] < SHARE * limit:
        return None
    half = many // 2
    if floors[-1] - floors[half] < STEADY * (floors[half] - floors[0]):
        return None
    middle, mean = (many - 1) / 2, sum(floors) / many
    spread = sum((at - middle) ** 2 for at in range(many))
    slope = sum((at - middle) * (floor - mean) for at, floor in enumerate(floors)) / spread
    variance = sum((floor - mean) ** 2 for floor in floors)
    if slope <= 0 or slope * slope * spread < STRAIGHT * variance:
        return None
    return Growth(slope, many + 1, limit)
