"""What each remedy took off the measured peak on a CPU, and what the planner says it takes off.

A pair is two rows of ``cpu.csv`` that differ in what the remedy changes and in nothing else.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accuracy.runs import Run
from sagefit.memory import Workload

Change = Callable[[Workload, Workload], bool]


@dataclass(frozen=True)
class Fall:
    """Peaks in GiB before and after a remedy, measured and predicted."""

    remedy: str
    before: Run
    after: Run

    @property
    def measured(self) -> float:
        """What it took off, as a share of the measured peak before."""
        return 1 - self.after.measured / self.before.measured

    @property
    def predicted(self) -> float:
        """What the planner says that it takes off, as a share of the same peak."""
        return (self.before.comparable() - self.after.comparable()) / self.before.measured

    @property
    def error(self) -> float:
        """How far apart the two are."""
        return abs(self.predicted - self.measured)


def _sets(**changed: Any) -> Change:
    """Whether the second workload is the first with these fields."""
    return lambda before, after: before != after and replace(before, **changed) == after


def _accumulates(before: Workload, after: Workload) -> bool:
    same = before.micro_batch * before.accumulation == after.micro_batch * after.accumulation
    finer = replace(before, micro_batch=after.micro_batch, accumulation=after.accumulation)
    return same and before.accumulation == 1 < after.accumulation and finer == after


def _adapts(before: Workload, after: Workload) -> bool:
    return (
        before.method == "full"
        and after.method == "lora"
        and replace(after, method="full", model=None) == replace(before, model=None)
    )


REMEDIES: dict[str, Change] = {
    "smaller micro-batch, accumulated": _accumulates,
    "checkpointing": _sets(gradient_checkpointing=True),
    "bf16 autocast": _sets(precision="bf16-mixed"),
    "SGD instead of AdamW": _sets(optimizer="sgd"),
    "LoRA": _adapts,
    "MALLOC_MMAP_THRESHOLD_": _sets(frees_at_once=True),
}

# The predicted and the measured fall of every pair differ by at most this share of the peak before. Under LoRA malloc
# held up to three times what is predicted of it.
STATED = dict.fromkeys(REMEDIES, 0.12) | {"LoRA": 0.22, "MALLOC_MMAP_THRESHOLD_": 0.25}


def falls(runs: Sequence[Run]) -> Iterator[Fall]:
    """Every pair of every remedy."""
    for remedy, changes in REMEDIES.items():
        for before in runs:
            for after in runs:
                if before.model == after.model and changes(before.workload, after.workload):
                    yield Fall(remedy, before, after)


def summary(found: Sequence[Fall]) -> dict[str, tuple[int, float, float, float]]:
    """For each remedy: pairs, medians of the measured and the predicted fall, and the largest difference of a pair."""
    kinds = {remedy: [fall for fall in found if fall.remedy == remedy] for remedy in REMEDIES}
    return {
        remedy: (
            len(pairs),
            statistics.median(fall.measured for fall in pairs),
            statistics.median(fall.predicted for fall in pairs),
            max(fall.error for fall in pairs),
        )
        for remedy, pairs in kinds.items()
    }
