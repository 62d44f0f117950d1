"""One attempt with every field filled in, as Terraform gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sagefit.job import Attempt, Job
from sagefit.job.values import Hyperparameter, as_text

if TYPE_CHECKING:
    from sagefit.catalog.choose import Candidate


@dataclass(frozen=True)
class PlannedAttempt:
    """One attempt: nothing is left to a default. Times are in seconds.

    ``fit`` is what the planner predicts for it: need, usable memory and verdict on its instance. None where the job
    file says nothing of its memory.
    """

    name: str
    reason: str
    instance_type: str
    instance_count: int
    spot: bool
    hyperparameters: dict[str, str]
    environment: dict[str, str]
    volume_size_gb: int
    keep_alive_seconds: int
    max_runtime_seconds: int
    max_wait_seconds: int | None
    max_pending_seconds: int | None
    next: dict[str, str]
    fit: Candidate | None = None

    def for_terraform(self) -> dict[str, Any]:
        """The fields of a Terraform attempt; of the prediction its fullest memory, in percent of what is usable."""
        fields = asdict(self)
        del fields["fit"]
        shares = [share for share in (self.fit.gpu_share, self.fit.host_share) if share is not None] if self.fit else []
        return fields | ({"memory_percent": round(100 * max(shares), 1)} if shares else {})


def fill(job: Job, attempt: Attempt, fit: Candidate | None = None) -> PlannedAttempt:
    """``attempt`` with what it leaves out taken from ``job.resources``, which then name a single instance type."""
    resources = job.resources
    spot = resources.spot if attempt.spot is None else attempt.spot
    pool = resources.warm_pool if isinstance(resources.warm_pool, int) and not spot else 0
    return PlannedAttempt(
        name=attempt.name,
        reason=attempt.reason,
        instance_type=attempt.instance_type or str(resources.instance_type),
        instance_count=attempt.instance_count or resources.instance_count,
        spot=spot,
        hyperparameters=texts(attempt.hyperparameters),
        environment=texts(attempt.environment),
        volume_size_gb=attempt.volume_size_gb or resources.volume_size_gb,
        keep_alive_seconds=pool if attempt.keep_alive_seconds is None else attempt.keep_alive_seconds,
        max_runtime_seconds=attempt.max_runtime_seconds or resources.max_runtime,
        max_wait_seconds=(attempt.max_wait_seconds or resources.max_wait) if spot else None,
        max_pending_seconds=attempt.max_pending_seconds or resources.max_pending,
        next={str(kind): target for kind, target in attempt.next.items()},
        fit=replace(fit, spot=spot) if fit else None,
    )


def texts(values: Mapping[str, Hyperparameter]) -> dict[str, str]:
    """Values as SageMaker takes them, in one order however they were written."""
    return {key: as_text(value) for key, value in sorted(values.items())}
