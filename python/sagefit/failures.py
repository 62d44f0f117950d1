"""What ended a training job: a class, the evidence for it, and what to change.

The patterns are rows of ``modules/training-job/failures.json``, the same that the state machine and the launcher use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import get_args

from sagefit.job.model import FailureClass
from sagefit.paths import FAILURES_JSON
from sagefit_launcher import log_lines, patterns
from sagefit_launcher.last_words import last_words, last_words_of_all
from sagefit_launcher.patterns import CREATE_ERROR, ECHO, FAILURE_REASON, SECONDARY_STATUS, Match, Pattern

CLASSES: tuple[str, ...] = get_args(FailureClass)
TERMINATED = (143, -15)  # 128 + SIGTERM, and subprocess's way to say it
KILLED = (137, -9, 247)  # 128 + SIGKILL, subprocess's way to say it, and what exit(-9) becomes
FULL = 95.0  # percent: from here on a host's memory, a GPU's memory or a disk counts as full
ROOMY = 80.0  # percent: below this a kill had another cause
TAIL_BYTES = 4_000_000  # read from the end of a log file: earlier lines did not end the job

REMEDIES: dict[str, tuple[str, ...]] = {
    "gpu_memory": (
        "halve hyperparameters.per_device_train_batch_size and double gradient_accumulation_steps",
        "set hyperparameters.gradient_checkpointing: true, or what the script calls it",
        "give memory.model: `sagefit size JOB` then shows what fits, and attempts: auto makes the attempts for this",
        "add an attempt with those hyperparameters, or a type with more memory per GPU, and name it in next.gpu_memory",
    ),
    "host_memory": (
        "lower hyperparameters.dataloader_num_workers and dataloader_prefetch_factor, or stream the data",
        "give memory.model: `sagefit size JOB` then shows what fits, and attempts: auto makes the attempts for this",
        "add an attempt with those hyperparameters, or a type with more memory, and name it in next.host_memory",
    ),
    "shared_memory": (
        "lower hyperparameters.dataloader_num_workers, or what the script calls it: /dev/shm cannot grow",
        "share tensors through files: torch.multiprocessing.set_sharing_strategy('file_system')",
    ),
    "disk": (
        "raise resources.volume_size_gb; on types with NVMe storage it has no effect, choose a larger type",
        "read with inputs.<channel>.mode: FastFile, or keep fewer checkpoints",
    ),
    "capacity": (
        "add an attempt with another instance type and name it in next.capacity; attempts: auto makes one",
        "raise resources.max_pending to wait longer for GPU instances",
    ),
    "quota": (
        "ask Service Quotas for '<type> for training job usage' (or '<type> for spot training job usage')",
        "set resources.instance_type to a type the account may use",
    ),
    "spot": (
        "add an attempt with spot: false and name it in next.spot, as attempts: auto does; checkpoints carry over",
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

_THROTTLED = (
    "start fewer runs at the same time: an account creates one training job a second, and this run asked for minutes",
    "ask Service Quotas for a higher rate of CreateTrainingJob requests, then start it again",
)
REMEDIES_OF_PATTERN: dict[str, tuple[str, ...]] = {"*Throttling*": _THROTTLED, "*Rate exceeded*": _THROTTLED}
"""Patterns that need other remedies than their class: throttling, for example, is no fault of the service."""

_AROUND = re.compile(r"^.{0,200}?Error for [\w ]{1,40} job \S{1,80}: Failed\.? Reason: ", re.DOTALL)
_OF_SAGEMAKER = re.compile(r"\s*(?:AlgorithmError|ClientError|CapacityError|InternalServerError)\b")
_EXIT_CODE = re.compile(r", exit code: -?\d+\s*$")
_SAYS_LITTLE = re.compile(r"\s*(?:AlgorithmError:[\s,]*)?(?:exit code: -?\d+)?\s*", re.IGNORECASE)

_WIDE = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}  # what a file begins with that is not UTF-8

Log = Sequence[str] | Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Diagnosis:
    """Why a training job did not complete.

    ``failure_class`` is one of `CLASSES`, like the keys of an attempt's ``next``. ``evidence`` is the line that shows
    the class. ``confidence`` is A (certain) to C (likely: stronger evidence replaces it). ``pattern`` is the glob that
    matched, or the rule for words ("words: memory + gpu"); None when nothing matched.
    """

    failure_class: str
    evidence: str
    pattern: str | None
    confidence: str

    @property
    def remedies(self) -> tuple[str, ...]:
        """What to change, the cheapest first."""
        return REMEDIES_OF_PATTERN.get(self.pattern or "", REMEDIES[self.failure_class])

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


def read_log(path: Path) -> list[str]:
    """The last lines of a log file, however large it is and whatever bytes are in it."""
    with path.open("rb") as file:
        wide = _WIDE.get(file.read(2))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES) // 2 * 2)
        lines = file.read().decode(wide or "utf-8", "replace").splitlines()
    return lines[1:] if size > TAIL_BYTES and len(lines) > 1 else lines


def decided(
    failure_reason: str | None = None,
    *,
    secondary_status: str | None = None,
    create_error: str | None = None,
    hosts: int = 1,
) -> Diagnosis | None:
    """The diagnosis when AWS's or the launcher's message is certain; None when logs or utilisation may say more.

    A launcher has read only the log of its own host. So its message that the script failed is certain on one host only.
    """
    if create_error is not None:
        return _diagnosis(patterns.first(table(), [CREATE_ERROR], create_error), create_error)
    if secondary_status and (match := patterns.first(table(), [SECONDARY_STATUS], secondary_status)):
        return _diagnosis(match, failure_reason or secondary_status)
    told, reason = _told(failure_reason)
    if told and (told.pattern.failure_class != "code" and not told.is_weak):
        return _diagnosis(told, reason)
    if told and _is_launchers(told) and hosts <= 1:
        return _diagnosis(told, reason)
    whole = not told and not reason.startswith("AlgorithmError")
    if whole and (match := patterns.first(table(), [CREATE_ERROR, SECONDARY_STATUS], reason)):
        return _diagnosis(match, reason)  # a create call's error, or a status, given as the reason
    return None


def diagnose(
    failure_reason: str | None = None,
    *,
    secondary_status: str | None = None,
    create_error: str | None = None,
    log: Log = (),
    exit_code: int | None = None,
    utilisation: Mapping[str, float] | None = None,
) -> Diagnosis:
    """The failure class, from what is known of a training job that did not complete. Nothing is asked of AWS.

    ``failure_reason`` and ``secondary_status`` come from ``DescribeTrainingJob``. ``create_error`` is the message of an
    error of ``CreateTrainingJob``. ``log`` holds the lines of the log, or a mapping from host names to lines.
    ``exit_code`` is that of the script. ``utilisation`` holds the highest use of ``host_memory``, ``gpu_memory`` and
    ``disk``, in percent.

    >>> from sagefit import diagnose
    >>> found = diagnose("AlgorithmError: , exit code: 1", log=["torch.OutOfMemoryError: CUDA out of memory."])
    >>> found.failure_class, found.evidence
    ('gpu_memory', 'torch.OutOfMemoryError: CUDA out of memory.')

    The strongest evidence comes first: the error of a create call, a secondary status that ends a job, the failure
    reason, the last words of each host's log, an exit code that means a kill, and the highest ``utilisation``. When a
    failure reason is only likely, a clearer log replaces it. The launcher has already read the log of its own host, so
    only the log of another host can replace the launcher's reason. Without any match the class is ``code``.
    """
    hosts = list(log.values()) if isinstance(log, Mapping) else [log]
    if _is_log(failure_reason or ""):
        hosts, failure_reason = [*hosts, (failure_reason or "").splitlines()], None
    sure = decided(failure_reason, secondary_status=secondary_status, create_error=create_error, hosts=len(hosts))
    if sure:
        return sure
    told, reason = _told(failure_reason)
    match, said = last_words_of_all(table(), hosts)
    own = told is not None and _is_launchers(told)
    if match and not match.is_weak and not (own and match.pattern.failure_class == "code"):
        return _diagnosis(match, match.text)
    if own:
        return _diagnosis(told, reason)
    if told and told.is_weak:
        return _weighed(_diagnosis(told, reason), utilisation or {})
    if exit_code in KILLED:
        killed = Diagnosis("host_memory", f"exit code {exit_code}: killed by SIGKILL", None, patterns.WEAK)
        return _weighed(_diagnosis(match, match.text) if match else killed, utilisation or {})
    if exit_code in TERMINATED and not match and not told:
        return Diagnosis("stopped", f"exit code {exit_code}: ended by SIGTERM", None, patterns.WEAK)
    if not match and not (told and told.is_weak) and not _SAYS_LITTLE.fullmatch(reason):
        match, said_by_reason = last_words(table(), reason.splitlines())
        said = said or said_by_reason
    if match:
        return _weighed(_diagnosis(match, match.text), utilisation or {})
    explained = log_lines.is_exception(said) and not patterns.first(table(), [ECHO], said)
    if told and not log_lines.is_exception(said):
        said = reason
    known = said or reason or (f"exit code {exit_code}" if exit_code is not None else "no reason")
    diagnosis = replace(_diagnosis(told, reason), evidence=" ".join(known.split()))
    return diagnosis if explained else _last_resort(diagnosis, utilisation or {})


def _told(failure_reason: str | None) -> tuple[Match | None, str]:
    """The first pattern that a failure reason matches, and the reason without an SDK's words around it."""
    reason = _AROUND.sub("", failure_reason or "")
    return patterns.first(table(), [FAILURE_REASON], reason), reason


def _is_log(reason: str) -> bool:
    """Whether the reason is lines of a log: SageMaker's own reasons begin with one of its error names."""
    return "\n" in reason.strip() and not _OF_SAGEMAKER.match(_AROUND.sub("", reason)) and "sagefit:" not in reason


def _is_launchers(told: Match) -> bool:
    return told.pattern.glob.startswith("*sagefit:")


def _weighed(diagnosis: Diagnosis, utilisation: Mapping[str, float]) -> Diagnosis:
    """A class that is only likely, compared with how full that resource was."""
    used = utilisation.get(diagnosis.failure_class)
    if used is None or diagnosis.confidence != patterns.WEAK:
        return diagnosis
    evidence = f"{diagnosis.evidence}; {_words(diagnosis.failure_class)} at most {used:.0f} % full"
    if used < ROOMY and not (diagnosis.pattern or "").startswith("words: memory"):  # which a line has said
        return replace(diagnosis, failure_class="code", evidence=evidence)
    return replace(diagnosis, evidence=evidence, confidence="B" if used >= FULL else patterns.WEAK)


def _last_resort(diagnosis: Diagnosis, utilisation: Mapping[str, float]) -> Diagnosis:
    """A failure that no text explains, by the resource that was full."""
    for resource in ("host_memory", "gpu_memory", "disk"):
        used = utilisation.get(resource, 0.0)
        if used >= FULL:
            evidence = f"{diagnosis.evidence}; {_words(resource)} {used:.0f} % full"
            return Diagnosis(resource, evidence, None, patterns.WEAK)
    return diagnosis


def _words(resource: str) -> str:
    return resource.replace("_", " ").replace("gpu", "GPU")


def _diagnosis(match: Match | None, text: str) -> Diagnosis:
    evidence = " ".join(text.split())
    if match is None:
        return Diagnosis("code", evidence, None, patterns.WEAK)
    row = match.pattern
    _, own, said = evidence.partition(f"sagefit: {row.failure_class}: ")
    if own and row.glob == f"*{own}*":
        evidence = _EXIT_CODE.sub("", said)  # the launcher's words, without SageMaker's around them
    return Diagnosis(row.failure_class, evidence, row.glob, row.confidence)
