"""An explanation on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from sagefit.console import command, out
from sagefit.explaining.explanation import Explanation
from sagefit.explaining.timeline import BLOCKS, PLAIN_BLOCKS, WIDTH, picture
from sagefit.explaining.tried import Remedy
from sagefit.failures import END, OF_GROWTH, ROOMY, Diagnosis, Excerpt
from sagefit.running.peaks import MEMORY_CLASSES

CONFIDENCE = {"A": "A, certain", "B": "B, seen in public reports", "C": "C, only likely"}
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_BESIDE = 10  # columns beside a picture


def cause(diagnosis: Diagnosis, around: Excerpt | None) -> Iterator[Text]:
    """The class, the evidence, and the lines around it."""
    yield Text(diagnosis.failure_class, style="bold")
    yield Text(f"evidence: {diagnosis.evidence}")
    yield Text(f"confidence: {CONFIDENCE[diagnosis.confidence]}")
    if around:
        yield from _excerpt(around)


def rejected(diagnosis: Diagnosis) -> Iterator[Text]:
    """What was considered and not believed."""
    for other in diagnosis.rejected:
        yield Text(f"not {other.failure_class}: {other.evidence} ({other.why})")


def advice(diagnosis: Diagnosis) -> Iterator[Text]:
    """What helps against such a failure in general."""
    for remedy in diagnosis.remedies:
        yield Text(f"try: {remedy}")


def page(found: Explanation, run: str) -> Iterator[Text]:
    """All of it, in the order in which people ask: cause, evidence, what was lost, what to do."""
    yield from cause(found.diagnosis, found.around)
    yield from rejected(found.diagnosis)
    if found.memory and (found.diagnosis.failure_class in MEMORY_CLASSES or found.memory.share >= ROOMY / 100):
        blocks = BLOCKS if out.encoding.startswith("utf") else PLAIN_BLOCKS
        lines = picture(found.memory, blocks=blocks, width=max(10, min(WIDTH, out.width - _BESIDE)))
        yield from (Text(line) for line in lines)
    attempt = found.attempt
    if found.reached:
        yield Text(f"reached: {found.reached}")
    if found.saved:
        yield Text(f"saved: {found.saved}")
    if found.lost:
        yield Text(f"lost: {found.lost}")
    if attempt and attempt.routed_by:
        yield Text(f"the run took it for {attempt.routed_by}, by the failure reason alone")
    if attempt and attempt.growth:
        yield Text(f"perhaps a leak: {attempt.growth}")
        yield from (Text(f"try: {remedy}") for remedy in OF_GROWTH)
    for number, remedy in enumerate(found.remedies, 1):
        yield from _change(remedy, number, run)
    yield from advice(found.diagnosis)


def _change(remedy: Remedy, number: int, run: str) -> Iterator[Text]:
    yield Text(f"change {number}: {remedy.proposal.words}", style="bold")
    if remedy.effect:
        yield Text(f"  {remedy.effect}")
    if remedy.refused:
        yield Text(f"  {remedy.refused}", style="yellow")
    for line in remedy.diff.splitlines():
        if not line.startswith(("---", "+++", "@@")) or remedy.text is None:
            yield Text(f"    {line}", style=_STYLES.get(line[:1], ""))
    yield Text(f"  apply it: {command('diagnose', run, '--apply', str(number))}")


def _excerpt(found: Excerpt) -> Iterator[Text]:
    """The lines around the cause, each with its number; an arrow shows the cause."""
    who = f"{found.host}, {found.rank}" if found.rank else found.host
    yield Text(f"{who}, line {found.first + found.at}:" if found.at != END else f"the end of the log of {who}:")
    width = len(str(found.first + len(found.lines)))
    for place, line in enumerate(found.lines):
        mark = ">" if place == found.at else " "
        style = "bold" if place == found.at else "dim"
        yield Text(f"{mark} {found.first + place:>{width}} | {line}", style=style)
