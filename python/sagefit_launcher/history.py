"""Memory over the whole life of a script, in few points however long that is."""

from __future__ import annotations

from typing import Any

MOST = 120  # points
EVERY = 1.0  # seconds of a point at first; doubled whenever there are too many of them


class History:
    """The highest memory of each stretch of time. The stretches are equally long, and grow with the script's life."""

    def __init__(self) -> None:
        self.every = EVERY
        self._host: list[int] = []
        self._gpu: list[int] = []
        self._has_gpus = False

    def add(self, seconds: float, host: int, gpu: int | None) -> None:
        """A sample: bytes of the host, and of its fullest GPU, if it has one. Seconds go up."""
        self._has_gpus = self._has_gpus or gpu is not None
        at = int(max(0.0, seconds) / self.every)
        while at >= MOST:
            self._host, self._gpu = _halved(self._host), _halved(self._gpu)
            self.every *= 2
            at = int(max(0.0, seconds) / self.every)
        for series, value in ((self._host, host), (self._gpu, gpu or 0)):
            while len(series) <= at:  # a stretch without a sample, as after a pause, is like the one before
                series.append(series[-1] if series and len(series) < at else 0)
            series[at] = max(series[at], value)

    def as_json(self) -> dict[str, Any]:
        """For sagefit.json."""
        return {
            "every_seconds": self.every,
            "host_bytes": list(self._host),
            "gpu_bytes": list(self._gpu) if self._has_gpus else None,
        }


def _halved(series: list[int]) -> list[int]:
    return [max(series[at : at + 2]) for at in range(0, len(series), 2)]
