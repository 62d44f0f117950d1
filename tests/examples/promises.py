"""What the examples promise, from ``expected.yaml``, and what a result breaks of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml_tables
from sagefit.examples import Example, Result, Step, all_examples
from sagefit.examples.result import COMPLETED

EXAMPLES = {example.name: example for example in all_examples()}
RUNNABLE = {name: example for name, example in EXAMPLES.items() if not example.planned_only}
PROMISED: dict[str, dict[str, Any]] = yaml_tables.read(Path(__file__).parent / "expected.yaml")
TESTED = {name: example for name, example in RUNNABLE.items() if not PROMISED.get(name, {}).get("only_compared")}


def broken(example: Example, result: Result) -> Iterator[str]:
    """Every promise that a result does not keep."""
    promised = PROMISED[example.name]
    if result.status != COMPLETED:
        yield f"{result.status}: {result.reason}"
    outcomes = [step.outcome for step in result.steps]
    if outcomes != promised["attempts"]:
        yield f"attempts ended as {outcomes}, promised is {promised['attempts']}"
    if set(result.metrics) != set(promised["metrics"]):
        yield f"metrics {sorted(result.metrics)}, promised are {sorted(promised['metrics'])}"
    for name, (least, most) in promised["metrics"].items():
        value = result.metrics.get(name)
        if value is not None and not least <= value <= most:
            yield f"{name} is {value}, promised is {least} to {most}"
    yield from _peak(result, promised.get("within"))
    yield from _remedies(result)


def _remedies(result: Result) -> Iterator[str]:
    """An attempt that is predicted to need less than the one before it is measured to."""
    for before, after in pairwise(result.steps):
        if before.predicted_gib and after.predicted_gib and after.predicted_gib < before.predicted_gib:
            yield from _falls(before, after)


def _falls(more: Step | None, less: Step | None) -> Iterator[str]:
    for of in ("predicted_gib", "measured_gib"):
        high, low = getattr(more, of, None), getattr(less, of, None)
        if not (high and low and low < high):
            yield f"{of} of {less and less.name} is {low}, of {more and more.name} {high}"


def _peak(result: Result, factor: float | None) -> Iterator[str]:
    step = result.last
    if step is None or step.measured_gib is None:
        yield "no peak was measured"
    elif (step.predicted_gib is None) != (factor is None):
        yield "a prediction and the factor that it promises (within) go together"
    elif step.predicted_gib is not None and factor is not None:
        off = max(step.measured_gib / step.predicted_gib, step.predicted_gib / step.measured_gib)
        if off > factor:
            yield f"measured {step.measured_gib} GiB, predicted {step.predicted_gib}: more than {factor} times off"
