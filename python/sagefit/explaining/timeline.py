"""Memory of an attempt over time, from what its recorder kept or, without one, from CloudWatch's metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sagefit.job.values import duration
from sagefit.running.reports import GIB, Report

WIDTH, HEIGHT = 60, 6
BLOCKS, PLAIN_BLOCKS = "▁▂▃▄▅▆▇█", ".:#"
_LEGEND = 7  # characters before the picture


@dataclass(frozen=True)
class Timeline:
    """The highest memory in GiB of each stretch of ``every_seconds``, on one host or its fullest GPU, and the limit."""

    what: str
    host: str
    every_seconds: float
    gib: tuple[float, ...]
    limit_gib: float | None
    saved_seconds: float | None = None
    gpu: bool = False

    @property
    def share(self) -> float:
        """The highest share of the limit; 0 where that is not known."""
        return max(self.gib) / self.limit_gib if self.limit_gib else 0.0

    def as_json(self) -> dict[str, Any]:
        """The object ``memory`` of ``sagefit diagnose --json``."""
        return {
            "what": self.what,
            "host": self.host,
            "every_seconds": self.every_seconds,
            "gib": [round(value, 4) for value in self.gib],
            "limit_gib": None if self.limit_gib is None else round(self.limit_gib, 4),
            "saved_seconds": self.saved_seconds,
        }


def of_hosts(reports: Sequence[Report]) -> tuple[Timeline, ...]:
    """Memory of the host that was fullest, and of its fullest GPU on the host where that was fullest."""
    kinds = ([each for report in reports if (each := _of(report, gpu=gpu))] for gpu in (False, True))
    return tuple(max(found, key=lambda each: each.share) for found in kinds if found)


def of_class(lines: Sequence[Timeline], failure_class: str) -> Timeline | None:
    """The one of GPUs after a lack of their memory, else the host's; None where it is not there."""
    return next((line for line in lines if line.gpu == (failure_class == "gpu_memory")), None)


def _of(report: Report, *, gpu: bool) -> Timeline | None:
    history = report.get("history")
    if not isinstance(history, dict):
        return None
    series, every = history.get("gpu_bytes" if gpu else "host_bytes"), history.get("every_seconds")
    if not isinstance(series, list) or not isinstance(every, (int, float)) or every <= 0:
        return None
    values = tuple(float(value) / GIB for value in series if isinstance(value, (int, float)))
    if not values or max(values) <= 0:
        return None
    if gpu:
        totals = [each.get("total_bytes") for each in report.get("gpus") or []]
        limit = max((total for total in totals if isinstance(total, (int, float))), default=None)
    else:
        limit = (report.get("host_memory") or {}).get("limit_bytes")
    saved = (report.get("checkpoints") or {}).get("saved_seconds")
    return Timeline(
        "GPU memory" if gpu else "host memory",
        str(report.get("host") or ""),
        float(every),
        values,
        limit / GIB if isinstance(limit, (int, float)) and limit > 0 else None,
        float(saved) if isinstance(saved, (int, float)) else None,
        gpu,
    )


def picture(line: Timeline, *, blocks: str = BLOCKS, width: int = WIDTH) -> Iterator[str]:
    """The timeline in lines of text: one column for each stretch, the limit at the top, and checkpoints marked."""
    values = _fitted(line.gib, width)
    top = max(line.limit_gib or 0.0, *values)
    seconds = line.every_seconds * len(line.gib)
    of = f" of {line.limit_gib:.2f}" if line.limit_gib else ""
    where = f" of {line.host}" if line.host else ""
    yield f"{line.what}{where} over {duration(seconds)}: up to {max(line.gib):.2f}{of} GiB"
    levels = len(blocks)
    filled = [round(value / top * HEIGHT * levels) for value in values]
    for row in range(HEIGHT - 1, -1, -1):
        scale = {HEIGHT - 1: f"{top:.2f}", 0: "0"}.get(row, "")
        cells = (max(0, min(levels, each - row * levels)) for each in filled)
        drawn = "".join(blocks[cell - 1] if cell else " " for cell in cells)
        yield f"{scale:>{_LEGEND}} |{drawn}".rstrip()
    if line.saved_seconds is not None:
        at = min(len(values) - 1, int(line.saved_seconds / seconds * len(values)))
        yield f"{'saved':>{_LEGEND}} |{' ' * at}^ last checkpoint, at {duration(line.saved_seconds)}"


def _fitted(values: Sequence[float], width: int) -> list[float]:
    """No more than ``width`` columns, each the highest of what it stands for; few values are drawn wider."""
    if len(values) <= width:
        times = max(1, min(width // len(values), 4))
        return [value for value in values for _ in range(times)]
    places = ((index * width // len(values), value) for index, value in enumerate(values))
    return [max(value for _, value in each) for _, each in groupby(places, key=lambda place: place[0])]
