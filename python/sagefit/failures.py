"""What ended a training job: a class, the evidence for it, and what to change.

The patterns are rows of ``modules/training-job/failures.json``, the same that the state machine and the launcher use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from sagefit.job.model import FailureClass
from sagefit.launcher import patterns
from sagefit.launcher.patterns import CREATE_ERROR, FAILURE_REASON, SECONDARY_STATUS, Match, Pattern
from sagefit.paths import FAILURES_JSON

CLASSES: tuple[str, ...] = get_args(FailureClass)
KILLED = (137, -9, 247)  # 128 + SIGKILL, subprocess's way to say it, and what exit(-9) becomes

REMEDIES: dict[str, tuple[str, ...]] = {
    "gpu_memory": (
        "halve hyperparameters.per_device_train_batch_size and double gradient_accumulation_steps",
        "turn on the script's gradient checkpointing",
        "add an attempt with those hyperparameters, or a type with more memory per GPU, and name it in next.gpu_memory",
    ),
    "host_memory": (
        "let the script hold less: stream the data, fewer loader workers, a smaller prefetch (its hyperparameters)",
        "add an attempt with those hyperparameters, or a type with more memory, and name it in next.host_memory",
    ),
    "shared_memory": (
        "lower the script's loader workers (num_workers): /dev/shm cannot be set on SageMaker",
        "share tensors through files: torch.multiprocessing.set_sharing_strategy('file_system')",
    ),
    "disk": (
        "raise resources.volume_size_gb; on types with NVMe storage it has no effect, choose a larger type",
        "read with inputs.<channel>.mode: FastFile, or keep fewer checkpoints",
    ),
    "capacity": (
        "add an attempt with another instance type and name it in next.capacity",
        "set resources.max_pending to wait longer for GPU instances",
    ),
    "quota": (
        "ask Service Quotas for '<type> for training job usage' (or '<type> for spot training job usage')",
        "set resources.instance_type to a type the account may use",
    ),
    "spot": (
        "add an attempt with spot: false and name it in next.spot; it resumes from the checkpoint",
        "raise resources.max_wait",
    ),
    "time": (
        "raise resources.max_runtime; the next attempt resumes from the checkpoint",
        "set resources.instance_type to a faster one",
    ),
    "stopped": ("somebody stopped it: start it again with `sagefit start JOB`",),
    "data": ("check inputs.<channel>: the prefix exists, lies in this region, ends with / for FastFile, may be read",),
    "permission": (
        "grant the execution role the action named in the evidence; inputs in other buckets are listed at the platform",
    ),
    "internal": ("a fault of the service: start it again; if it repeats, check that the image starts at all",),
    "code": ("read the evidence and the last lines of the log: another instance would fail alike",),
}

_EXIT_CODE = re.compile(r", exit code: -?\d+\s*$")


@dataclass(frozen=True)
class Diagnosis:
    """Why a training job did not complete. ``pattern`` is the glob that told, None when nothing did."""

    failure_class: str
    evidence: str
    pattern: str | None
    confidence: str

    @property
    def remedies(self) -> tuple[str, ...]:
        """What to change, the cheapest first."""
        return REMEDIES[self.failure_class]

    def as_json(self) -> dict[str, object]:
        """The object of ``sagefit diagnose --json``."""
        return {
            "class": self.failure_class,
            "confidence": self.confidence,
            "evidence": self.evidence,
            "pattern": self.pattern,
            "remedies": list(self.remedies),
        }


@lru_cache(maxsize=1)
def table() -> tuple[Pattern, ...]:
    """The rows of ``failures.json`` in order of precedence."""
    return tuple(patterns.load(FAILURES_JSON))


def classify(
    failure_reason: str | None = None,
    *,
    secondary_status: str | None = None,
    create_error: str | None = None,
    log: Sequence[str] = (),
    exit_code: int | None = None,
) -> Diagnosis:
    """Tells the failure class from what is known of a job that did not complete.

    Most telling first: the error of a create call, a secondary status that ends a job, the failure reason, the last
    words of the log, the exit code. A reason that only says that the script failed leaves room for its log, except
    the launcher's own, who has read the log already. Nothing that matches means ``code``.
    """
    if create_error is not None:
        return _diagnosis(patterns.first(table(), [CREATE_ERROR], create_error), create_error)
    if secondary_status and (match := patterns.first(table(), [SECONDARY_STATUS], secondary_status)):
        return _diagnosis(match, failure_reason or secondary_status)
    reason = failure_reason or ""
    told = patterns.first(table(), [FAILURE_REASON], reason)
    if told and (told.pattern.failure_class != "code" or told.pattern.glob.startswith("*sagefit:")):
        return _diagnosis(told, reason)
    said, last_line = patterns.last_words(table(), log)
    if said:
        return _diagnosis(said, said.text)
    if told:
        return _diagnosis(told, reason)
    if exit_code in KILLED:
        return Diagnosis("host_memory", f"exit code {exit_code}: killed by SIGKILL", None, "C")
    return _diagnosis(None, reason or last_line or (f"exit code {exit_code}" if exit_code is not None else "no reason"))


def _diagnosis(match: Match | None, text: str) -> Diagnosis:
    evidence = " ".join(text.split())
    if match is None:
        return Diagnosis("code", evidence, None, "C")
    row = match.pattern
    _, own, said = evidence.partition(f"sagefit: {row.failure_class}: ")
    if own and row.glob == f"*{own}*":
        evidence = _EXIT_CODE.sub("", said)  # the launcher's words, without SageMaker's around them
    return Diagnosis(row.failure_class, evidence, row.glob, row.confidence)
