"""Hears all witnesses, believes one, and keeps why the others were not believed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import IO

from sagefit.failures.diagnosis import Diagnosis, Rejected
from sagefit.failures.witnesses import WITNESSES, Known, Testimony, as_diagnosis, is_log
from sagefit.paths import FAILURES_JSON
from sagefit_launcher import log_lines, patterns
from sagefit_launcher.last_words import explains_itself, last_words
from sagefit_launcher.patterns import ECHO, Pattern

FULL = 95.0  # percent: from here on a host's memory, a GPU's memory or a disk counts as full
ROOMY = 80.0  # percent: below this a kill had another cause
_CHUNK = 1_000_000  # bytes that are read of a pipe at once
TAIL_BYTES = 4_000_000  # read from the end of a log file: earlier lines did not end the job

_WIDE = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}  # what a file begins with that is not UTF-8

Log = Sequence[str] | Mapping[str, Sequence[str]]


@lru_cache(maxsize=1)
def table() -> tuple[Pattern, ...]:
    """The rows of ``failures.json`` in order of precedence."""
    return tuple(patterns.load(FAILURES_JSON))


def read_log(path: Path) -> list[str]:
    """The last lines of a log file, however large it is and whatever bytes are in it; it may be a pipe, too."""
    with path.open("rb") as file:
        if not file.seekable():
            return read_stream(file)
        head = file.read(2)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES) // 2 * 2)
        return _lines(head, file.read(), is_cut=size > TAIL_BYTES)


def read_stream(stream: IO[bytes]) -> list[str]:
    """The last lines of what comes through a pipe, however much it is: no more than these are kept."""
    head = stream.read(2)
    kept, size = bytearray(head), len(head)
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        kept += chunk
        if len(kept) > TAIL_BYTES + _CHUNK:
            del kept[: (len(kept) - TAIL_BYTES) // 2 * 2]
    return _lines(head, bytes(kept), is_cut=size > len(kept))


def _lines(head: bytes, content: bytes, *, is_cut: bool) -> list[str]:
    lines = content.decode(_WIDE.get(head) or "utf-8", "replace").splitlines()
    return lines[1:] if is_cut and len(lines) > 1 else lines


def decided(
    failure_reason: str | None = None,
    *,
    secondary_status: str | None = None,
    create_error: str | None = None,
    hosts: int = 1,
) -> Diagnosis | None:
    """The diagnosis when AWS's or the launcher's message is certain; None when logs or utilisation may say more.

    A launcher has read only the log of its own host. So its message that the script failed is certain on one host
    only, and there only where an error's name or a pattern shows it.
    """
    known = Known(table(), failure_reason or "", secondary_status, create_error, host_count=hosts)
    said = next((each for each in _heard(known) if each.is_certain), None)
    return said.diagnosis if said else None


def diagnose(
    failure_reason: str | None = None,
    *,
    secondary_status: str | None = None,
    create_error: str | None = None,
    log: Log = (),
    exit_code: int | None = None,
    kernel_kills: int = 0,
    utilisation: Mapping[str, float] | None = None,
) -> Diagnosis:
    """The failure class, from what is known of a training job that did not complete. Nothing is asked of AWS.

    ``failure_reason`` and ``secondary_status`` come from ``DescribeTrainingJob``. ``create_error`` is the message of an
    error of ``CreateTrainingJob``. ``log`` holds the lines of the log, or a mapping from host names to lines.
    ``exit_code`` is that of the script. ``kernel_kills`` is how many processes the kernel killed for memory in the
    container. ``utilisation`` holds the highest use of ``host_memory``, ``gpu_memory`` and ``disk``, in percent.

    >>> from sagefit import diagnose
    >>> found = diagnose("AlgorithmError: , exit code: 1", log=["torch.OutOfMemoryError: CUDA out of memory."])
    >>> found.failure_class, found.evidence
    ('gpu_memory', 'torch.OutOfMemoryError: CUDA out of memory.')

    The strongest evidence comes first: the error of a create call, a secondary status that ends a job, the failure
    reason, the last words of each host's log, the kernel's counter, an exit code that means a kill, and the highest
    ``utilisation``. What is certain stands above what is only likely. The launcher has already read the log of its own
    host, so only the log of another host can replace the launcher's reason. Without any match the class is ``code``,
    the weakest answer of all: it yields to memory at its limit.
    """
    hosts, summary = list(log.values()) if isinstance(log, Mapping) else [log], ""
    if is_log(failure_reason or ""):
        summary, failure_reason = failure_reason or "", None
        hosts.append(summary.splitlines())
    known = Known(
        table(),
        failure_reason or "",
        secondary_status,
        create_error,
        hosts,
        len(hosts),
        exit_code,
        kernel_kills,
        utilisation or {},
        summary,
    )
    heard = [*_heard(known)]
    believed = next((each for each in heard if each.is_certain), next(iter(heard), None))
    if believed is None:
        found = _left_over(known)
    elif believed.is_certain:
        found = believed.diagnosis
    else:
        found = _weighed(believed.diagnosis, known.utilisation)
    return replace(found, rejected=_rejected(found, [*_others(heard, believed), *_of_the_log(known)]))


def _heard(known: Known) -> Iterator[Testimony]:
    return filter(None, (witness(known) for witness in WITNESSES))


def _weighed(diagnosis: Diagnosis, utilisation: Mapping[str, float]) -> Diagnosis:
    """A class that is only likely, compared with how full that resource was."""
    used = utilisation.get(diagnosis.failure_class)
    if used is None or diagnosis.confidence != patterns.WEAK:
        return diagnosis
    told = f"{_words(diagnosis.failure_class)} at most {used:.0f} % full"
    evidence = f"{diagnosis.evidence}; {told}"
    if used < ROOMY and not (diagnosis.pattern or "").startswith("words: memory"):  # which a line has said
        rejected = Rejected(diagnosis.failure_class, diagnosis.evidence, told)
        return replace(diagnosis, failure_class="code", evidence=evidence, rejected=(rejected,))
    return replace(diagnosis, evidence=evidence, confidence="B" if used >= FULL else patterns.WEAK)


def _left_over(known: Known) -> Diagnosis:
    """What is left when no witness speaks: code, or the resource that was full where nothing explains the code."""
    _, said, _ = known.read
    if not known.launcher_spoke and not known.says_little:
        said = said or last_words(known.rows, known.reason.splitlines())[1]
    own = as_diagnosis(known.told, known.reason)
    if known.launcher_spoke:
        said = own.evidence
    elif known.told and not log_lines.is_exception(said):
        said = known.reason
    text = said or known.reason or (f"exit code {known.exit_code}" if known.exit_code is not None else "no reason")
    code = replace(own, evidence=" ".join(text.split()))
    if known.launcher_spoke:
        code = replace(code, confidence=patterns.WEAK)  # nothing shows it
    is_vague = not log_lines.is_exception(said) or patterns.first(known.rows, [ECHO], said) is not None
    for resource in ("host_memory", "gpu_memory", "disk"):
        used = known.utilisation.get(resource, 0.0)
        # A full host is near its end. An allocator keeps a GPU's memory, and a disk may be full of what is wanted:
        # there only a failure without any words gives way, and not where the launcher was, which saw both.
        yields = not explains_itself(said) if resource == "host_memory" else is_vague and not known.launcher_spoke
        if used >= FULL and yields:
            told = f"{_words(resource)} {used:.0f} % full"
            rejected = Rejected("code", code.evidence, f"no pattern knows it, and {told}")
            return Diagnosis(resource, f"{code.evidence}; {told}", None, patterns.WEAK, (rejected,))
    return code


def _rejected(found: Diagnosis, others: Sequence[Rejected]) -> tuple[Rejected, ...]:
    """One of each class that was not believed, the first."""
    each = {other.failure_class: other for other in (*reversed(others), *reversed(found.rejected))}
    each.pop(found.failure_class, None)
    return tuple(sorted(each.values(), key=[*found.rejected, *others].index))


def _others(heard: Sequence[Testimony], believed: Testimony | None) -> Iterator[Rejected]:
    """What the witnesses said who were not believed."""
    for each in heard:
        said = each.diagnosis
        if believed is None or each is believed:
            continue
        if believed.is_certain and not each.is_certain:
            why = f"it is only likely, and {believed.witness} is certain"
        else:
            why = f"{believed.witness} is believed first"
        yield Rejected(said.failure_class, said.evidence, why)


def _of_the_log(known: Known) -> Iterator[Rejected]:
    """Failures that a log names and that did not end the script."""
    for match, why in known.read[2]:
        yield Rejected(match.pattern.failure_class, " ".join(match.text.split()), why)


def _words(resource: str) -> str:
    return resource.replace("_", " ").replace("gpu", "GPU")
