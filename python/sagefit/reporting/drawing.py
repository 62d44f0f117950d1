"""Where everything of a picture goes, in units of its own. The templates draw it; nothing here knows of HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sagefit.explaining import Timeline
from sagefit.job.values import duration
from sagefit.reporting.gathering import Story
from sagefit.running import AttemptRecord, view
from sagefit.running.records import COMPLETED, StepRecord

WIDTH = 900
LEFT, RIGHT = 210, 14  # beside the part that is to scale
ROW, HEAD, FOOT = 40, 8, 26
MOST_TICKS = 8
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)
_LETTER, GAP = 7.2, 6  # about how wide a letter is, and what is left free beside words

KINDS = {
    COMPLETED: "good",
    **dict.fromkeys(("gpu_memory", "host_memory", "shared_memory", "disk"), "memory"),
    **dict.fromkeys(("capacity", "spot", "quota", "internal"), "cloud"),
    "": "running",
}
"""The colour of an outcome, by name; every other one is ``other``."""
MEANINGS = {
    "good": "completed",
    "memory": "memory or disk ran out",
    "cloud": "not to be had, taken away, or AWS failed",
    "other": "another failure",
    "running": "running",
}


class Tick(NamedTuple):
    """A mark of an axis: its place and what is written there."""

    at: float
    words: str


class Part(NamedTuple):
    """A stretch of a bar, and what kind of time or money it is."""

    x: float
    width: float
    kind: str


@dataclass(frozen=True)
class Row:
    """A step, an attempt or a run: its name at the left, its bar, and words beside the bar."""

    y: float
    name: str
    below: str
    parts: tuple[Part, ...]
    words: str
    words_x: float
    place: str
    link: str


@dataclass(frozen=True)
class Bars:
    """Rows above a common axis."""

    height: float
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    words: str


@dataclass(frozen=True)
class Level:
    """A horizontal line of a picture of memory: the limit, or what was predicted."""

    y: float
    kind: str
    words: str


@dataclass(frozen=True)
class Curve:
    """Memory over time: an outline with its levels, both axes, and the time of the last checkpoint."""

    title: str
    line: str
    area: str
    levels: tuple[Level, ...]
    rows: tuple[Tick, ...]
    ticks: tuple[Tick, ...]
    saved: Tick | None
    bottom: float


FAR = 2
"""What was predicted is drawn up to so many times the limit: beyond, the rest would be too flat to be seen."""
CURVE_HEIGHT, CURVE_LEFT, CURVE_TOP = 230, 56, 22


def course(story: Story) -> Bars | None:
    """Every step and attempt of a run over time; None for a run that has begun none."""
    began = story.record.started
    whole = max(1.0, (story.ended - began).total_seconds())
    rows = [_over_time(at, chapter.job, began, story, whole) for at, chapter in enumerate(story.chapters)]
    what = f"{story.record.run.name} over {duration(whole)}: "
    told = "; ".join(f"{row.name} {row.words}" for row in rows)
    return Bars(_height(rows), tuple(rows), tuple(_times(whole, LEFT, WIDTH - RIGHT)), what + told) if rows else None


def spending(stories: Sequence[Story]) -> Bars | None:
    """What the attempts of each run cost, or took where a price is not known; None where nothing was billed."""
    prices = not any(story.record.spent.incomplete for story in stories)
    sums = [sum(_amount(chapter.job, prices=prices) for chapter in story.chapters) for story in stories]
    most = max(sums, default=0.0)
    if most <= 0:
        return None
    rows = []
    for at, (story, total) in enumerate(zip(stories, sums, strict=True)):
        parts, x = [], float(LEFT)
        for chapter in story.chapters:
            width = _amount(chapter.job, prices=prices) / most * (WIDTH - RIGHT - LEFT)
            parts.append(Part(x, width, kind(chapter.job.outcome)))
            x += width
        said = f"{'~' if story.record.spent.estimated else ''}{total:.4f} USD" if prices else duration(total)
        began = f"{story.record.started:%Y-%m-%d %H:%M}"
        name = story.record.run.name
        rows.append(_row(at, name, began, parts, f"{story.record.status.lower()}, {said}", anchor(name)))
    title = "price in USD" if prices else "billed time"
    return Bars(_height(rows) - FOOT, tuple(rows), (), f"{title} of each run, by the outcome of its attempts")


def memory(line: Timeline, attempt: AttemptRecord) -> Curve:
    """The memory of an attempt, with its limit and what today's formulas predict."""
    predicted = attempt.predicted_gpu_gib if line.gpu else attempt.predicted_host_gib
    peak = max(line.gib)
    whole = line.every_seconds * len(line.gib)
    right, bottom = WIDTH - RIGHT, CURVE_HEIGHT - FOOT
    top_gib = max(peak, line.limit_gib or 0.0)
    top_gib = max(top_gib, predicted if predicted and predicted < top_gib * FAR else 0.0) * 1.04

    def y(gib: float) -> float:
        return round(bottom - gib / top_gib * (bottom - CURVE_TOP), 1)

    def x(seconds: float) -> float:
        return round(CURVE_LEFT + seconds / whole * (right - CURVE_LEFT), 1)

    steps = " ".join(f"V{y(value)} H{x((at + 1) * line.every_seconds)}" for at, value in enumerate(line.gib))
    levels = [Level(y(line.limit_gib), "limit", f"limit {line.limit_gib:.2f} GiB")] if line.limit_gib else []
    if predicted is not None and predicted <= top_gib:
        levels.append(Level(y(predicted), "predicted", f"predicted {predicted:.2f} GiB"))
    of = f" of {line.limit_gib:.2f}" if line.limit_gib else ""
    where = f" of {line.host}" if line.host else ""
    saved = line.saved_seconds
    return Curve(
        title=f"{line.what}{where} over {duration(whole)}: up to {peak:.2f}{of} GiB",
        line=f"M{CURVE_LEFT} {y(line.gib[0])} {steps}",
        area=f"M{CURVE_LEFT} {bottom} {steps} V{bottom} Z",
        levels=tuple(levels),
        rows=tuple(Tick(y(value), f"{value:g}") for value in _round_values(top_gib)),
        ticks=tuple(_times(whole, CURVE_LEFT, right)),
        saved=Tick(x(min(saved, whole)), f"last checkpoint, at {duration(saved)}") if saved is not None else None,
        bottom=bottom,
    )


def kind(outcome: str) -> str:
    """The colour of an outcome, by name."""
    return KINDS.get(outcome, "other")


def _over_time(at: int, job: AttemptRecord | StepRecord, began: datetime, story: Story, whole: float) -> Row:
    name = f"{number(job)} {job.name}"
    price = view.usd(job)
    words = ", ".join([job.outcome or view.doing(job), *([f"{price} USD"] if price[-1:].isdigit() else [])])
    if job.created is None:
        return _row(at, name, view.instance(job), [], f"{words}: refused, so nothing ran", place(story, job))
    scale = (WIDTH - RIGHT - LEFT) / whole
    start = (job.created - began).total_seconds()
    end = ((job.ended or story.ended) - began).total_seconds()
    script = min(end, start + job.start_seconds) if job.start_seconds is not None else start if job.search else end
    cuts = [max(0.0, start), max(0.0, script), max(0.0, end)]
    lost = (job.lost_seconds or 0.0) if isinstance(job, AttemptRecord) else 0.0
    cuts.insert(2, max(cuts[1], cuts[2] - lost))
    xs = [LEFT + cut * scale for cut in cuts]
    kinds = ("waiting", kind(job.outcome), f"{kind(job.outcome)} lost")
    parts = [Part(a, b - a, what) for a, b, what in zip(xs, xs[1:], kinds, strict=False) if b - a > 0]
    return _row(at, name, view.instance(job), parts, words, place(story, job))


def _row(at: int, name: str, below: str, parts: Sequence[Part], words: str, link: str) -> Row:
    """Words stand behind the bar; where they would leave the picture, in it, or before it if it is too short."""
    rounded = tuple(Part(round(part.x, 1), round(max(part.width, 1.0), 1), part.kind) for part in parts)
    start = parts[0].x if parts else LEFT
    end = parts[-1].x + parts[-1].width if parts else LEFT
    wide = len(words) * _LETTER + GAP
    if end + wide < WIDTH:
        place, x = "start", end + GAP
    elif any(part.width > wide and not part.kind.endswith("lost") for part in parts):
        place, widest = (
            "inside",
            max((part for part in reversed(parts) if not part.kind.endswith("lost")), key=_width_of),
        )
        x = widest.x + widest.width - GAP
    else:
        place, x = "end", max(wide, start - GAP)
    return Row(HEAD + at * ROW, name, below, rounded, words, round(x, 1), place, link)


def _width_of(part: Part) -> float:
    return part.width


def legend(drawn: Bars) -> list[tuple[str, str]]:
    """The colours of a picture and what they mean, in the order of `KINDS`."""
    shown = {part.kind for row in drawn.rows for part in row.parts}
    return [(each, words) for each, words in MEANINGS.items() if each in shown]


def place(story: Story, job: AttemptRecord | StepRecord) -> str:
    """The place of the page that tells of a step or an attempt."""
    return anchor(f"{story.record.run.name} {number(job)} {job.name}")


def number(job: AttemptRecord | StepRecord) -> str:
    """What a ledger has for it: ``0`` for the first attempt, ``p0`` for the first step."""
    return f"p{job.index}" if isinstance(job, StepRecord) else str(job.index)


def anchor(name: str) -> str:
    """The name of a place of the page."""
    return "at-" + "".join(letter if letter.isalnum() else "-" for letter in name)


def _amount(job: AttemptRecord | StepRecord, *, prices: bool) -> float:
    if not prices:
        return float(job.billable_seconds or 0.0)
    return (job.usd if job.usd is not None else job.estimated_usd) or 0.0


def _height(rows: Sequence[Row]) -> float:
    return HEAD + ROW * len(rows) + FOOT


def _times(whole: float, left: float, right: float) -> Iterator[Tick]:
    step = next((each for each in _SECONDS if whole / each <= MOST_TICKS), whole / MOST_TICKS)
    count = int(whole / step)
    for at in range(count + 1):
        yield Tick(round(left + at * step / whole * (right - left), 1), duration(at * step) if at else "0")


def _round_values(most: float) -> Iterator[float]:
    """Round numbers from 0 up to ``most``, three to six of them."""
    unit = next(each * 10.0**power for power in range(-6, 9) for each in (1, 2, 5) if most / (each * 10.0**power) <= 5)
    at = 0
    while at * unit <= most:
        yield round(at * unit, 9)
        at += 1
