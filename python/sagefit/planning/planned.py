"""One attempt with every field filled in, as Terraform gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sagefit.catalog.hardware import Instances, in_words
from sagefit.job import Attempt, Job
from sagefit.job.tuning import Tuning
from sagefit.job.values import Hyperparameter, as_text, duration
from sagefit.planning.choose import Candidate

STOP_SECONDS = 120
"""How long a job that SageMaker stops may still run before it is killed; it is paid for (API, StopTrainingJob).

For a processing job AWS does not say how long. It counts as a training job here.
"""


@dataclass(frozen=True)
class PlannedAttempt:
    """One attempt: nothing is left to a default. Times are in seconds.

    ``fit`` is the planner's prediction: need, usable memory and verdict on its instance, with groups on the group that
    fits it worst. None when the job file says nothing about its memory. With ``instance_groups`` there is no
    ``instance_type``, and ``instance_count`` counts the instances of all groups. With ``tuning`` the attempt is a
    search, and its limits are those of each of its training jobs.
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
    tuning: Tuning | None = None
    instance_groups: tuple[Instances, ...] = ()

    @property
    def label(self) -> str:
        """What to call it: ``attempt NAME``, or as a step ``processing NAME``."""
        return self.name if " " in self.name else f"attempt {self.name}"

    @property
    def instances(self) -> tuple[Instances, ...]:
        """What it runs on, by type."""
        return self.instance_groups or (Instances("", self.instance_type, self.instance_count),)

    @property
    def hardware(self) -> str:
        """What it runs on, in words."""
        return in_words(self.instances)

    @property
    def longest_seconds(self) -> int:
        """The longest it may take, waiting for capacity included."""
        seconds = (self.max_wait_seconds or self.max_runtime_seconds) + (self.max_pending_seconds or 0)
        return self.tuning.longest(seconds) if self.tuning else seconds

    @property
    def limit(self) -> str:
        """Its time limit for people: ``1 h``, or of a search ``6 x 1 h``."""
        return (
            f"{self.tuning.jobs} x {duration(self.max_runtime_seconds)}"
            if self.tuning
            else duration(self.max_runtime_seconds)
        )

    @property
    def paid_seconds(self) -> int:
        """The most that its training jobs may run, together; each on all of its instances.

        A job that is stopped at its time limit may go on for another 120 s, see `STOP_SECONDS`.
        """
        seconds = self.max_runtime_seconds
        return self.tuning.trained(seconds, STOP_SECONDS) if self.tuning else seconds + STOP_SECONDS

    def for_terraform(self) -> dict[str, Any]:
        """The fields of a Terraform attempt; of the prediction its fullest memory, in percent of what is usable."""
        fields = asdict(replace(self, fit=None))
        del fields["fit"], fields["tuning"], fields["instance_groups"]
        if self.instance_groups:
            del fields["instance_type"], fields["instance_count"]
            fields["instance_groups"] = [group._asdict() for group in self.instance_groups]
        shares = [share for share in (self.fit.gpu_share, self.fit.host_share) if share is not None] if self.fit else []
        return fields | ({"memory_percent": round(100 * max(shares), 1)} if shares else {})


def fill(job: Job, attempt: Attempt, fit: Candidate | None = None) -> PlannedAttempt:
    """``attempt`` with what it leaves out taken from ``job.resources``, which then name one instance type or groups."""
    resources = job.resources
    groups = tuple(Instances(g.name, g.instance_type, g.instance_count) for g in resources.instance_groups)
    spot = resources.spot if attempt.spot is None else attempt.spot
    pool = resources.warm_pool if isinstance(resources.warm_pool, int) and not spot else 0
    return PlannedAttempt(
        name=attempt.name,
        reason=attempt.reason,
        instance_type="" if groups else attempt.instance_type or str(resources.instance_type),
        instance_count=sum(g.instance_count for g in groups) or attempt.instance_count or resources.instance_count,
        spot=spot,
        hyperparameters=texts(attempt.hyperparameters),
        environment=texts(attempt.environment),
        volume_size_gb=attempt.volume_size_gb or resources.volume_size_gb,
        keep_alive_seconds=pool if attempt.warm_pool is None else attempt.warm_pool,
        max_runtime_seconds=attempt.max_runtime or resources.max_runtime,
        max_wait_seconds=(attempt.max_wait or resources.max_wait) if spot else None,
        max_pending_seconds=attempt.max_pending or resources.max_pending,
        next={str(kind): target for kind, target in attempt.next.items()},
        fit=fit._replace(spot=spot) if fit else None,
        instance_groups=groups,
        tuning=job.tuning,
    )


def texts(values: Mapping[str, Hyperparameter]) -> dict[str, str]:
    """Values as SageMaker accepts them, in a fixed order."""
    return {key: as_text(value) for key, value in sorted(values.items())}
