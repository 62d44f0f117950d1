"""What became of an example, as data: a row of ``examples/results.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sagefit.examples.find import Example
from sagefit.job import load_job
from sagefit.planning import JobPlan, plan, predicted_on_cpu

COMPLETED, FAILED, PLANNED = "completed", "failed", "planned"
_DIGITS = 3  # of GiB; a peak is sampled, so more would be noise


@dataclass(frozen=True)
class Step:
    """An attempt of the run. Memory is the peak of one host in GiB: predicted (point and upper bound) and measured."""

    name: str
    outcome: str
    predicted_gib: float | None = None
    predicted_upper_gib: float | None = None
    measured_gib: float | None = None


@dataclass(frozen=True)
class Result:
    """One example. ``status`` is ``completed``, ``failed``, or ``planned`` for one that only AWS can run.

    ``planned`` counts the attempts that the job has, ``steps`` are those that ran. ``reason`` says why it was planned
    only, or what failed.
    """

    example: str
    job: str
    status: str
    planned: int = 0
    steps: tuple[Step, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def name(self) -> str:
        """``EXAMPLE/JOB``, or ``EXAMPLE`` for the main job."""
        return self.example if self.example == self.job else f"{self.example}/{self.job}"

    @property
    def last(self) -> Step | None:
        """The attempt that completed, or the last that did not."""
        return self.steps[-1] if self.steps else None

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """The inverse of `as_json`."""
        return cls(**{**data, "steps": tuple(Step(**step) for step in data["steps"])})


def planned_only(example: Example) -> Result:
    """Of an example that the embedded cloud cannot run."""
    return Result(example.folder, example.job, PLANNED, reason=example.planned_only)


def failed(example: Example, reason: str) -> Result:
    """Of an example that did not come as far as a run."""
    return Result(example.folder, example.job, FAILED, reason=reason)


def of_run(example: Example, record: Mapping[str, Any], reason: str) -> Result:
    """Of an example that ran, from its record as ``sagefit runs --json`` prints it; ``reason`` if it failed."""
    planned = plan(load_job(str(example.path)))
    attempts = record["attempts"]
    succeeded = record["status"] == "SUCCEEDED"
    metrics = attempts[-1]["metrics"] if attempts else {}
    return Result(
        example.folder,
        example.job,
        COMPLETED if succeeded else FAILED,
        planned=len(planned.attempts),
        steps=tuple(_step(planned, attempt) for attempt in attempts),
        metrics={name: float(f"{value:.6g}") for name, value in metrics.items()},
        reason="" if succeeded else reason,
    )


def _step(plan: JobPlan, attempt: Mapping[str, Any]) -> Step:
    own = plan.attempt(attempt["name"])
    prediction = predicted_on_cpu(plan, own) if own else None
    host = prediction.host if prediction else None
    return Step(
        attempt["name"],
        attempt["outcome"],
        _rounded(host.point if host else None),
        _rounded(host.upper if host else None),
        _rounded(attempt["host_peak_gib"]),
    )


def _rounded(gib: float | None) -> float | None:
    return None if gib is None else round(gib, _DIGITS)
