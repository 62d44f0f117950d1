"""The ``tuning`` block of a job file: what each attempt searches for instead of training once.

Limits are those of CreateHyperParameterTuningJob (API reference) and of automatic model tuning (SageMaker developer
guide, "Resource limits for automatic model tuning").
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field

from sagefit.job.forms import LIST, MAPPING, either
from sagefit.job.limits import bounded
from sagefit.job.values import Fields, Scalar, Seconds, WholeOrNumber, as_text

Strategy = Literal["Bayesian", "Random", "Grid", "Hyperband"]
Scaling = Literal["Auto", "Linear", "Logarithmic", "ReverseLogarithmic"]


class Objective(Fields):
    """The metric that tells which trial is best: its last value in the log of each."""

    metric: Annotated[str, Field(min_length=1, max_length=255)]
    type: Literal["Maximize", "Minimize"]


class Range(Fields):
    """The numbers a hyperparameter may have, both ends included: whole ones where both ends are whole."""

    min: WholeOrNumber
    max: WholeOrNumber
    scaling: Scaling = "Auto"

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers are searched."""
        return isinstance(self.min, int) and isinstance(self.max, int)


class Tuning(Fields):
    """A search over hyperparameters: each attempt is a tuning job, which trains as often as this says."""

    strategy: Strategy = "Bayesian"
    objective: Objective
    max_jobs: Annotated[int, bounded("tuning.max_jobs")] | None = None
    max_parallel_jobs: Annotated[int, bounded("tuning.max_parallel_jobs")] = 1
    parallel_quota: Annotated[int, bounded("tuning.parallel_quota")] = 10
    max_runtime: Annotated[Seconds, bounded("tuning.max_runtime")] | None = None
    early_stopping: bool = False
    seed: Annotated[int, bounded("tuning.seed")] | None = None
    ranges: Annotated[
        dict[
            str,
            Annotated[
                Annotated[Range, MAPPING] | Annotated[list[Scalar], LIST],
                either("a mapping with min and max, or a list of values"),
            ],
        ],
        bounded("tuning.ranges"),
    ]

    @property
    def combinations(self) -> int | None:
        """How many different trials there can be; None where a range of other than whole numbers has no such number."""
        sizes = [
            len(found) if isinstance(found, list) else int(found.max) - int(found.min) + 1
            for found in self.ranges.values()
            if isinstance(found, list) or found.is_whole
        ]
        return math.prod(sizes) if len(sizes) == len(self.ranges) else None

    @property
    def jobs(self) -> int:
        """The most training jobs of one tuning job; a grid has as many as combinations."""
        return self.max_jobs or self.combinations or 1

    def for_terraform(self) -> dict[str, Any]:
        """The block as variable ``tuning`` of modules/training-job takes it."""
        fields = {
            "strategy": self.strategy,
            **self.model_dump(exclude={"ranges", "max_runtime"}, exclude_defaults=True),
        }
        if self.max_runtime is not None:
            fields["max_runtime_seconds"] = self.max_runtime
        if self.strategy == "Grid":  # which takes as many as it has combinations
            fields.pop("max_jobs", None)
        return fields | {"ranges": {name: self._range(name) for name in sorted(self.ranges)}}

    def _range(self, name: str) -> dict[str, Any]:
        found = self.ranges[name]
        if not isinstance(found, Range):
            return {"type": "Categorical", "values": [as_text(value) for value in found]}
        return {"type": "Integer" if found.is_whole else "Continuous", **found.model_dump(exclude_defaults=True)}

    def longest(self, seconds: int) -> int:
        """Seconds that a tuning job may take whose training jobs take ``seconds`` each."""
        rounds = math.ceil(self.jobs / self.max_parallel_jobs)
        return min(rounds * seconds, self.max_runtime or rounds * seconds)

    def trained(self, seconds: int, stopping: int) -> int:
        """Seconds that the training jobs may take together: what is paid for.

        Each may take ``seconds``, and as many as ``stopping`` more while it is stopped. So may those that still run
        when the tuning job reaches its own time limit.
        """
        most = self.jobs * (seconds + stopping)
        return min(most, self.max_parallel_jobs * (self.max_runtime + stopping)) if self.max_runtime else most

    def values(self, name: str) -> list[str]:
        """The ends of a range, or all of its categories, as a script gets them."""
        found = self.ranges[name]
        return [as_text(value) for value in ([found.min, found.max] if isinstance(found, Range) else found)]
