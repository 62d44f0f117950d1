"""Who can say what ended a training job: each witness looks at one thing that is known, and says a class or nothing.

`WITNESSES` has them in the order in which they are believed. What a witness says is certain, or only likely; nobody
says ``code`` unless something shows it: that is what is left when nobody else speaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sagefit.failures.diagnosis import Diagnosis
from sagefit_launcher import log_lines, patterns
from sagefit_launcher.last_words import PassedOver, explains_itself, last_words, last_words_of_all
from sagefit_launcher.patterns import CREATE_ERROR, REASON, SECONDARY_STATUS, SUMMARY, Match, Pattern

ANY_CODE = "*sagefit: code: *"
"""The launcher's `code` that says no more."""
TIMED_OUT = 124  # of `timeout` of GNU coreutils
TERMINATED = (143, -15, 129)  # 128 + SIGTERM, subprocess's way to say it, and 128 + SIGHUP
INTERRUPTED = (130, -2)  # 128 + SIGINT: Ctrl-C, or a script that ends as if
ALARMED = (142, -14)  # 128 + SIGALRM: a time that was set is over
TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
BUS_ERROR = (135, -7)  # 128 + SIGBUS: a page of a file that cannot be had, mostly of /dev/shm
_LATE = 200  # lines of a log after a notice: two minutes at AWS, half a minute elsewhere
KILLED = (137, -9, 247)  # 128 + SIGKILL, subprocess's way to say it, and what exit(-9) becomes

_AROUND = re.compile(r"^.{0,200}?Error for [\w ]{1,40} job \S{1,80}: Failed\.? Reason: ", re.DOTALL)
_OF_SAGEMAKER = re.compile(r"\s*(?:AlgorithmError|ClientError|CapacityError|InternalServerError)\b")
_EXIT_CODE = re.compile(r", exit code: -?\d+\s*$")
# What is raised where a process of a pool is gone. Python's and Ray's documentation name a kill as the cause, and Ray's
# the lack of memory as the first reason for one. A launcher knows better, by the host's memory.
_WORKER_IS_GONE = re.compile(
    r"\bBrokenProcessPool: .*terminated abruptly|\bWorkerCrashedError: The worker died unexpectedly"
)
# What the machine's own metadata says before it is taken back, as the documentation of AWS, Azure and Google has it.
_NOTICE = re.compile(
    r"\binstance-action\b.{0,80}\baction\W{1,4}(?:terminate|stop|hibernate)\b"
    r"|/spot/(?:instance-action|termination-time) HTTP/[\d.]+\W{1,3}200\b"  # it is not there before
    r"|\bEventType\W{1,4}Preempt\b|/instance/preempted\W{1,4}TRUE\b"
)
_SAYS_LITTLE = re.compile(r"\s*(?:AlgorithmError:[\s,]*)?(?:exit code: -?\d+)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Known:
    """What is known of a training job that did not complete, as `diagnose` was given it."""

    rows: Sequence[Pattern]
    failure_reason: str = ""
    secondary_status: str | None = None
    create_error: str | None = None
    hosts: Sequence[Sequence[str]] = ()
    host_count: int = 1
    exit_code: int | None = None
    kernel_kills: int = 0
    utilisation: Mapping[str, float] = field(default_factory=dict)
    summary: str = ""
    """A failure reason of several lines, which is read as one host's log."""

    @cached_property
    def reason(self) -> str:
        """The failure reason, without an SDK's words around it."""
        return _AROUND.sub("", self.failure_reason)

    @cached_property
    def told(self) -> Match | None:
        """The first row that the failure reason matches."""
        return patterns.first(self.rows, REASON, self.reason)

    @property
    def says_little(self) -> bool:
        """Whether the failure reason has no words but an exit code."""
        return _SAYS_LITTLE.fullmatch(self.reason) is not None

    @property
    def launcher_spoke(self) -> bool:
        """Whether the failure reason is the launcher's, who has read the log of its own host."""
        return self.told is not None and self.told.pattern.glob.startswith("*sagefit:")

    @cached_property
    def read(self) -> tuple[Match | None, str, list[PassedOver]]:
        """What the ends of the hosts' logs say, the line that says most, and what was read and did not count."""
        passed_over: list[PassedOver] = []
        match, said = last_words_of_all(self.rows, self.hosts, passed_over)
        return match, said, passed_over


class Testimony(NamedTuple):
    """What one witness says."""

    witness: str
    diagnosis: Diagnosis
    is_certain: bool


def create_call(known: Known) -> Testimony | None:
    """AWS, which refused to make the job."""
    if known.create_error is None:
        return None
    match = patterns.first(known.rows, [CREATE_ERROR], known.create_error)
    return Testimony("the refused request", as_diagnosis(match, known.create_error), True)


def status(known: Known) -> Testimony | None:
    """SageMaker, which ended the job: a secondary status that says why."""
    if not known.secondary_status:
        return None
    match = patterns.first(known.rows, [SECONDARY_STATUS], known.secondary_status)
    text = known.failure_reason or known.secondary_status
    return Testimony("SageMaker's status", as_diagnosis(match, text), True) if match else None


def launcher(known: Known) -> Testimony | None:
    """The launcher, which saw the process end. It has read the log of its own host only.

    That the script failed is certain on one host only, and where something shows it.
    """
    if not known.launcher_spoke:
        return None
    found = as_diagnosis(known.told, known.reason)
    if found.failure_class != "code":
        return Testimony("the launcher", found, True)
    measured = found.pattern != ANY_CODE  # such as a leak, which no other host can have caused
    certain = measured or (known.host_count <= 1 and _is_shown(known.rows, found.evidence))
    return Testimony("the launcher", found, True) if certain else None


def service(known: Known) -> Testimony | None:
    """SageMaker's failure reason, or its training toolkit's, which copies lines of a log into it."""
    told = known.told
    if told and not known.launcher_spoke and told.pattern.failure_class != "code":
        return Testimony("the failure reason", as_diagnosis(told, known.reason), not told.is_weak)
    if told or known.reason.startswith("AlgorithmError"):
        return None
    match = patterns.first(known.rows, [CREATE_ERROR, SECONDARY_STATUS], known.reason)
    return Testimony("the failure reason", as_diagnosis(match, known.reason), True) if match else None


def notice(known: Known) -> Testimony | None:
    """The cloud, which told the machine that it takes it back, and then ended what ran on it by a signal.

    A script that looks for the notice may leave by itself, and ask to be tried again.
    """
    match, said, _ = known.read
    left = known.exit_code == TRY_AGAIN and not log_lines.is_exception(said)
    ended = match.pattern.failure_class == "stopped" if match else known.exit_code in TERMINATED or left
    if known.launcher_spoke or not ended:
        return None
    ends = (line for lines in known.hosts for line in reversed(lines[-_LATE:]))
    line = next(filter(_NOTICE.search, ends), None)
    if line is None:
        return None
    return Testimony("a notice of the cloud", Diagnosis("spot", " ".join(line.split()), None, "B"), True)


def log(known: Known) -> Testimony | None:
    """The last words of each host's log."""
    match, _, _ = known.read
    if match is None:
        return None
    if known.launcher_spoke and (known.host_count <= 1 or match.is_weak or match.pattern.failure_class == "code"):
        return None  # it has read this log, or knows as much of it
    return Testimony("the log", as_diagnosis(match, match.text), not match.is_weak)


def kernel(known: Known) -> Testimony | None:
    """The kernel, which counts what it kills for memory in the container."""
    if known.kernel_kills <= 0:
        return None
    many = "a process" if known.kernel_kills == 1 else f"{known.kernel_kills} processes"
    return Testimony("the kernel", Diagnosis("host_memory", f"the kernel killed {many} for memory", None, "B"), False)


def end_of_the_process(known: Known) -> Testimony | None:
    """An exit code that means a signal."""
    if known.launcher_spoke:
        return None
    if known.exit_code in KILLED:
        text = f"exit code {known.exit_code}: killed by SIGKILL"
        return Testimony("the exit code", Diagnosis("host_memory", text, None, patterns.WEAK), False)
    if known.exit_code in TERMINATED and not known.told:
        text = f"exit code {known.exit_code}: ended by SIGTERM"
        return Testimony("the exit code", Diagnosis("stopped", text, None, patterns.WEAK), False)
    if known.exit_code in INTERRUPTED and not known.told:
        text = f"exit code {known.exit_code}: ended by SIGINT"
        return Testimony("the exit code", Diagnosis("stopped", text, None, patterns.WEAK), False)
    if known.exit_code in ALARMED and not known.told:
        text = f"exit code {known.exit_code}: ended by SIGALRM"
        return Testimony("the exit code", Diagnosis("time", text, None, patterns.WEAK), False)
    if known.exit_code in BUS_ERROR:
        text = f"exit code {known.exit_code}: ended by SIGBUS"
        return Testimony("the exit code", Diagnosis("shared_memory", text, None, patterns.WEAK), False)
    if known.exit_code == TIMED_OUT and not known.told:
        text = f"exit code {known.exit_code}: what timeout ends a command with"
        return Testimony("the exit code", Diagnosis("time", text, None, patterns.WEAK), False)
    return None


def lost_worker(known: Known) -> Testimony | None:
    """A pool that lost a process, and does not know why."""
    match, said, _ = known.read
    if match is not None or known.launcher_spoke or not _WORKER_IS_GONE.search(said):
        return None
    return Testimony("the log", Diagnosis("host_memory", " ".join(said.split()), None, patterns.WEAK), False)


def words_of_the_reason(known: Known) -> Testimony | None:
    """The failure reason read as a log, where no pattern knows it; one that is a log, read as a summary."""
    if known.summary:
        match = patterns.first(known.rows, [SUMMARY], known.summary)
    elif known.launcher_spoke or known.says_little:
        return None
    else:
        match, _ = last_words(known.rows, known.reason.splitlines())
    return Testimony("the failure reason", as_diagnosis(match, match.text), False) if match else None


WITNESSES: tuple[Callable[[Known], Testimony | None], ...] = (
    create_call,
    status,
    launcher,
    service,
    notice,
    log,
    kernel,
    end_of_the_process,
    lost_worker,
    words_of_the_reason,
)
"""Certain words first, then likely ones; among the same, in this order."""


def is_log(reason: str) -> bool:
    """Whether a reason is lines of a log: SageMaker's own reasons begin with one of its error names."""
    return "\n" in reason.strip() and not _OF_SAGEMAKER.match(_AROUND.sub("", reason)) and "sagefit:" not in reason


def as_diagnosis(match: Match | None, text: str) -> Diagnosis:
    """A row that matched, with the text as evidence; without one, the weakest of all: code."""
    evidence = " ".join(text.split())
    if match is None:
        return Diagnosis("code", evidence, None, patterns.WEAK)
    row = match.pattern
    _, own, said = evidence.partition(f"sagefit: {row.failure_class}: ")
    if own and row.glob.startswith(f"*{own}"):
        evidence = _EXIT_CODE.sub("", said)  # the launcher's words, without SageMaker's around them
    return Diagnosis(row.failure_class, evidence, row.glob, row.confidence)


def _is_shown(rows: Sequence[Pattern], evidence: str) -> bool:
    """Whether something shows that the script failed by itself: an error's name, or a pattern of the code's errors."""
    match, _ = last_words(rows, [evidence.rpartition("exit code ")[2].partition(": ")[2] or evidence])
    return explains_itself(evidence) or (match is not None and match.pattern.failure_class == "code")
