"""Records of what a run, its steps and its attempts did. Other modules read the data from AWS."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import NamedTuple

from sagefit.failures import Diagnosis
from sagefit.platform import Platform

COMPLETED = "completed"
"""The outcome of what did not fail."""


class Spent(NamedTuple):
    """A price in USD: whether it is of estimated prices, and whether something was billed whose price is not known."""

    usd: float
    estimated: bool
    incomplete: bool


@dataclass(frozen=True)
class Run:
    """One run: its name, which is the execution's, and where it lives."""

    name: str
    job: str
    platform: Platform

    @property
    def arn(self) -> str:
        """The ARN of the execution."""
        return self.platform.execution_arn(self.job, self.name)


@dataclass(frozen=True)
class Search:
    """What a tuning job has tried so far. ``best`` is the objective's best value, None while there is none."""

    metric: str
    most: int | None
    completed: int
    failed: int
    running: tuple[str, ...]
    best: float | None
    best_job: str
    failed_job: str
    hyperparameters: dict[str, str]

    @property
    def told_by(self) -> str:
        """The training job that represents the search: the best, else the newest that failed; may be none."""
        return self.best_job or self.failed_job

    def __str__(self) -> str:
        of = f" of {self.most}" if self.most else ""
        parts = [f"{self.completed}{of} trials completed"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{len(self.running)} running"] if self.running else []
        parts += [f"best {self.metric}={self.best:g}"] if self.best is not None else []
        return ", ".join(parts)


@dataclass(frozen=True)
class StepRecord:
    """One processing step of a run, in an attempt's words: times in seconds, money in USD; neither spot nor a search.

    ``billable_seconds`` is the time between start and end, for SageMaker tells no other. ``created`` and ``ended`` are
    the times of its processing job, and ``start_seconds`` what passed from the first to its script.
    """

    index: int
    name: str
    instance_type: str = ""
    instance_count: int = 1
    processing_job: str = ""
    status: str = ""
    outcome: str = ""
    diagnosis: Diagnosis | None = None
    billable_seconds: int | None = None
    usd: float | None = None
    estimated_usd: float | None = None
    spot: bool = False
    search: None = None
    created: datetime | None = None
    ended: datetime | None = None
    start_seconds: float | None = None

    @property
    def evidence(self) -> str:
        """What tells the failure class; empty for a step that did not fail."""
        return self.diagnosis.evidence if self.diagnosis else ""


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt of a run. Times in seconds, memory in GiB (per GPU, per host), money in USD.

    ``outcome`` is ``completed``, a failure class, or empty while the attempt runs; ``usd`` is None where no published
    price is known, and ``estimated_usd`` is the cost at an estimated price. ``started_by`` says why the attempt was
    started and ``next_step`` what followed. ``predicted_gpu_gib`` and ``predicted_host_gib`` come from today's
    formulas; see `expected`. ``code`` is the digest of its code and ``output`` the folder of its output. ``routed_by``
    is the class that the state machine used, if it differs from ``outcome``: the state machine reads only
    ``failure_reason``, while ``outcome`` also uses logs and utilisation. ``search`` is what a tuning job has tried; the
    tuning job is then the ``training_job`` of the attempt. ``groups`` describes its instance groups in words, and
    ``start_seconds`` is the time from ``created``, its creation, to the start of the script. ``interruptions`` counts
    how often SageMaker started it again, ``lost_seconds`` is the training time after its last checkpoint if it failed
    (None: not known), ``model_is_empty`` tells that it completed and its script wrote no model, and ``growth`` says in
    words that host memory grew from checkpoint to checkpoint until it failed. ``idle`` says that its GPUs had little to
    do and what would change that, ``filled_disk`` that a disk was nearly full. ``host_limit_gib`` and ``gpu_limit_gib``
    are what the peaks count against, where the recorder told it.
    """

    index: int
    name: str
    instance_type: str = ""
    instance_count: int = 1
    spot: bool = False
    training_job: str = ""
    status: str = ""
    outcome: str = ""
    diagnosis: Diagnosis | None = None
    host_peak_gib: float | None = None
    billable_seconds: int | None = None
    usd: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    model: str = ""
    estimated_usd: float | None = None
    started_by: str = ""
    next_step: str = ""
    gpu_peak_gib: float | None = None
    predicted_gpu_gib: float | None = None
    predicted_host_gib: float | None = None
    hyperparameters: dict[str, str] = field(default_factory=dict)
    code: str = ""
    output: str = ""
    failure_reason: str = ""
    routed_by: str = ""
    groups: list[str] = field(default_factory=list)
    start_seconds: float | None = None
    search: Search | None = None
    interruptions: int = 0
    lost_seconds: float | None = None
    model_is_empty: bool = False
    growth: str = ""
    idle: str = ""
    filled_disk: str = ""
    created: datetime | None = None
    ended: datetime | None = None
    host_limit_gib: float | None = None
    gpu_limit_gib: float | None = None

    @property
    def lost_usd(self) -> float | None:
        """The price of ``lost_seconds``, at an estimated price where no other is known; None where there is none."""
        usd = self.usd if self.usd is not None else self.estimated_usd
        if usd is None or self.lost_seconds is None or not self.billable_seconds:
            return None
        return usd * min(1.0, self.lost_seconds / self.billable_seconds)

    @property
    def log_job(self) -> str:
        """The training job whose log tells how the attempt ended."""
        return self.search.told_by if self.search else self.training_job

    @property
    def evidence(self) -> str:
        """What tells the failure class; empty for an attempt that did not fail."""
        return self.diagnosis.evidence if self.diagnosis else ""


@dataclass(frozen=True)
class RunRecord:
    """A run with its attempts. ``status`` is the execution's: RUNNING, SUCCEEDED, FAILED, ABORTED or TIMED_OUT.

    ``resumes`` is the name of the run whose checkpoints this one began with; empty if it began from the beginning.
    ``read`` is when all this was so, by AWS's clock: this machine's may be wrong.
    """

    run: Run
    status: str
    started: datetime
    ended: datetime | None
    attempts: list[AttemptRecord]
    error: str = ""
    cause: str = ""
    steps: list[StepRecord] = field(default_factory=list)
    resumes: str = ""
    read: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    @property
    def jobs(self) -> list[StepRecord | AttemptRecord]:
        """Its steps and attempts, in the order in which they were begun."""
        return [*self.steps, *self.attempts]

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status != "RUNNING"

    @property
    def spent(self) -> Spent:
        """The price of all attempts and steps."""
        known = [usd for job in self.jobs if (usd := job.usd if job.usd is not None else job.estimated_usd) is not None]
        estimated = any(job.estimated_usd is not None for job in self.jobs)
        missing = any(job.usd is None and job.estimated_usd is None and job.billable_seconds for job in self.jobs)
        return Spent(sum(known), estimated, missing)

    @property
    def succeeded(self) -> bool:
        """Whether an attempt completed."""
        return self.status == "SUCCEEDED"
