"""The answer: a class, the evidence for it, what to change, and what else was considered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, get_args

from sagefit.failures.remedies import OF_A_STEP, REMEDIES, REMEDIES_OF_EVIDENCE, REMEDIES_OF_PATTERN
from sagefit.job.model import FailureClass

CLASSES: tuple[str, ...] = get_args(FailureClass)


class Rejected(NamedTuple):
    """Another class that something spoke for, the evidence, and why it was not believed."""

    failure_class: str
    evidence: str
    why: str


@dataclass(frozen=True)
class Diagnosis:
    """Why a training job did not complete.

    ``failure_class`` is one of `CLASSES`, like the keys of an attempt's ``next``. ``evidence`` is the line that shows
    the class. ``confidence`` is A (certain) to C (likely: stronger evidence replaces it). ``pattern`` is the glob that
    matched, or the rule for words ("words: memory + gpu"); None when nothing matched. ``rejected`` has the other
    classes that something spoke for, each with why it was not believed. ``step`` names the processing step that failed:
    what to change are its fields then.
    """

    failure_class: str
    evidence: str
    pattern: str | None
    confidence: str
    rejected: tuple[Rejected, ...] = ()
    step: str = ""

    @property
    def remedies(self) -> tuple[str, ...]:
        """What to change, the cheapest first."""
        if self.step and self.failure_class in OF_A_STEP:
            return tuple(text.replace("{step}", f"processing[{self.step}]") for text in OF_A_STEP[self.failure_class])
        if of_pattern := REMEDIES_OF_PATTERN.get(self.pattern or ""):
            return of_pattern
        known = () if self.step else REMEDIES_OF_EVIDENCE
        said = (remedies for words, remedies in known if words.search(self.evidence))
        return next(said, REMEDIES[self.failure_class])

    def as_json(self) -> dict[str, object]:
        """The object of ``sagefit diagnose --json``."""
        return {
            "class": self.failure_class,
            "confidence": self.confidence,
            "evidence": self.evidence,
            "pattern": self.pattern,
            "remedies": list(self.remedies),
            "rejected": [
                {"class": each.failure_class, "evidence": each.evidence, "why": each.why} for each in self.rejected
            ],
        }
