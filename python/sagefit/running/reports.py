"""What the flight recorder of a training job left in its output: ``sagefit.json`` of each host."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple, cast

from botocore.exceptions import ClientError

from sagefit.job.values import duration
from sagefit.running.clients import CONNECTION_LOST, s3

Report = dict[str, Any]

GIB = 1024**3
LARGEST = 64 * 1024**2
"""Bytes of an archive that are read for a report without being asked."""
_NAME = re.compile(r"(?:.*/)?sagefit(?:-[\w-]+)?\.json")
_GROWTH = ("bytes_per_checkpoint", "checkpoints", "more_checkpoints")
_BUSY = ("samples_before", "samples", "idle_samples", "waiting_samples", "gpu_percent", "cpu_percent")
_LEAST_SAMPLES = 60  # one a second
NEARLY_FULL = 0.85
"""The share from which the platform's alarm of disks speaks, unless it is set otherwise (``alarms.thresholds``)."""
_REPORT_BYTES = 4 * 1024**2


def read(output: str, *, largest: int = LARGEST) -> list[Report]:
    """The report of each host, from ``output``, the folder that SageMaker made for a training job.

    Empty where there is none, where it may not be read, or in an archive of more than ``largest`` bytes: what else
    the script left in its output is packed with it.
    """
    bucket, _, key = output.removeprefix("s3://").partition("/")
    if not bucket or not key:
        return []
    try:
        found = [*_archived(bucket, f"{key}/output.tar.gz", largest)] or [*_loose(bucket, f"{key}/data/")]
    except CONNECTION_LOST:
        raise
    except (ClientError, tarfile.TarError, OSError, EOFError):
        return []
    return found


def host_peak_gib(reports: Sequence[Report]) -> float | None:
    """The peak memory that counted against the limit of the fullest host; None when it was not measured."""
    memory = [report.get("host_memory") or {} for report in reports]
    return _gib(m.get("peak_bytes") for m in memory if m.get("source") != "none")


def gpu_peak_gib(reports: Sequence[Report]) -> float | None:
    """The peak memory of the fullest GPU of any host. If samples missed it, what torch's allocator had reserved."""
    sampled = [gpu.get("peak_bytes") for report in reports for gpu in report.get("gpus") or []]
    reserved = [peak.get("peak_reserved_bytes") for report in reports for peak in report.get("torch") or []]
    return _gib([*sampled, *reserved]) if sampled else None


def host_limit_gib(reports: Sequence[Report]) -> float | None:
    """The limit that `host_peak_gib` counts against; None when no report tells."""
    return _limit_gib((report.get("host_memory") or {} for report in reports), "limit_bytes")


def gpu_limit_gib(reports: Sequence[Report]) -> float | None:
    """The memory of the fullest GPU of any host; None when no report tells."""
    return _limit_gib((gpu for report in reports for gpu in report.get("gpus") or []), "total_bytes")


def utilisation(reports: Sequence[Report]) -> dict[str, float]:
    """The highest share of any host in percent: of host_memory, gpu_memory, shared_memory and disk, where known."""
    parts: list[tuple[str, Any, Any]] = []
    for report in reports:
        memory, shared = report.get("host_memory") or {}, report.get("shared_memory") or {}
        parts.append(("host_memory", memory.get("peak_bytes"), memory.get("limit_bytes")))
        parts.append(("shared_memory", shared.get("peak_bytes"), shared.get("total_bytes")))
        for resource, key in (("gpu_memory", "gpus"), ("disk", "disks")):
            parts += [(resource, part.get("peak_bytes"), part.get("total_bytes")) for part in report.get(key) or []]
    highest: dict[str, float] = {}
    for resource, used, total in parts:
        if isinstance(used, (int, float)) and isinstance(total, (int, float)) and total > 0:
            highest[resource] = max(100 * used / total, highest.get(resource, 0.0))
    return highest


def kernel_kills(reports: Sequence[Report]) -> int:
    """How many processes the kernels of all hosts killed for memory."""
    counts = [(report.get("host_memory") or {}).get("oom_kills") for report in reports]
    return sum(count for count in counts if isinstance(count, int))


def lost_seconds(reports: Sequence[Report], *, kept: bool) -> float | None:
    """The training time since any host last wrote a checkpoint, which another attempt has to repeat.

    All of it where none was written, or the job does not keep them (``kept``). None where no report tells.
    """
    told = [report for report in reports if isinstance(report.get("checkpoints"), dict)]
    if not told:
        return None
    saved = [float(report["checkpoints"].get("saved_seconds") or 0.0) for report in told] if kept else [0.0]
    return round(max(0.0, max(float(report.get("seconds") or 0.0) for report in told) - max(saved)), 1)


def has_saved(reports: Sequence[Report]) -> bool:
    """Whether any host wrote a checkpoint while it trained; true where no report tells."""
    told = [report["checkpoints"] for report in reports if isinstance(report.get("checkpoints"), dict)]
    return not told or any(each.get("saved_seconds") is not None for each in told)


def has_model(reports: Sequence[Report]) -> bool:
    """Whether any host left files for the model; true where no report tells."""
    told = [report["model"] for report in reports if isinstance(report.get("model"), dict)]
    return not told or any(model.get("files") for model in told)


def newest_checkpoint(reports: Sequence[Report]) -> str:
    """The file that was last written into the folder of checkpoints of any host; empty where none was."""
    told = [report.get("checkpoints") or {} for report in reports]
    saved = [each for each in told if isinstance(each.get("saved_seconds"), (int, float)) and each.get("newest")]
    return str(max(saved, key=lambda each: each["saved_seconds"])["newest"]) if saved else ""


def growth(reports: Sequence[Report]) -> str:
    """Host memory that grew from checkpoint to checkpoint, on the host where that was most, in words; else empty."""
    told = [report["growth"] for report in reports if isinstance(report.get("growth"), dict)]
    grown = [each for each in told if all(isinstance(each.get(key), (int, float)) for key in _GROWTH)]
    if not grown:
        return ""
    per, times, more = (max(grown, key=lambda each: float(each[_GROWTH[0]]))[key] for key in _GROWTH)
    return (
        f"host memory grew by {per / GIB:.3g} GiB from each checkpoint to the next, {times - 1:.0f} times; a host with "
        f"twice the memory would last for {more:.0f} checkpoints more"
    )


class Idle(NamedTuple):
    """GPUs that had little to do, on the host where that was worst: shares from 0 to 1 of its time, use in percent.

    ``share`` is the time in which they were less than 10 % busy, ``waiting`` the part of it in which the CPUs were more
    than 90 % busy (the launcher's ``busy.py``). With ``never`` they were not used at all.
    """

    share: float
    waiting: float
    gpu: float
    cpu: float
    never: bool


def idle(reports: Sequence[Report]) -> Idle | None:
    """GPUs that were idle for more than half of the time, after they were first used; None where none were.

    Half is the ``threshold`` of SageMaker Debugger's rule CPUBottleneck. Less than a minute tells nothing.
    """
    found = [each for report in reports if (each := _idle(report.get("busy")))]
    return max(found, key=lambda each: each.share, default=None)


def _idle(busy: Any) -> Idle | None:
    told = busy if isinstance(busy, dict) else {}
    if not all(isinstance(told.get(key), (int, float)) for key in _BUSY):
        return None
    before, samples, idle_samples, waiting, gpu, cpu = (float(told[key]) for key in _BUSY)
    if samples == 0 and before >= _LEAST_SAMPLES:
        return Idle(1.0, 0.0, 0.0, cpu, never=True)
    if samples < _LEAST_SAMPLES or idle_samples <= samples / 2:
        return None
    return Idle(idle_samples / samples, waiting / samples, gpu, cpu, never=False)


def fullest_disk(reports: Sequence[Report]) -> str:
    """A disk of any host that was nearly full, in words: the fullest; else empty."""
    disks = [(disk, report) for report in reports for disk in report.get("disks") or []]
    full = [(share, disk, report) for disk, report in disks if (share := _share(disk)) >= NEARLY_FULL]
    if not full:
        return ""
    share, disk, report = max(full, key=lambda each: each[0])
    first, seconds = disk.get("first_bytes"), report.get("seconds")
    told = f"{disk.get('path')} was {100 * share:.0f} % full ({disk['peak_bytes'] / GIB:.3g} GiB)"
    if isinstance(first, int) and isinstance(seconds, (int, float)) and first < disk["peak_bytes"]:
        told += f", {(disk['peak_bytes'] - first) / GIB:.3g} GiB of it written in {duration(seconds)}"
    return told


def _share(disk: Any) -> float:
    used, total = (disk.get("peak_bytes"), disk.get("total_bytes")) if isinstance(disk, dict) else (None, None)
    known = isinstance(used, (int, float)) and isinstance(total, (int, float)) and total > 0
    return used / total if known else 0.0  # type: ignore[operator]


def gpus_per_host(reports: Sequence[Report]) -> int:
    """GPUs that the recorder saw on a host."""
    return max((len(report.get("gpus") or []) for report in reports), default=0)


def _limit_gib(parts: Iterable[Report], key: str) -> float | None:
    """What the fullest of ``parts`` may hold, which stands under ``key``."""
    fullest: Report = max(parts, key=lambda part: _gib([part.get("peak_bytes")]) or 0.0, default={})
    return _gib([fullest.get(key)])


def _gib(sizes: Any) -> float | None:
    most = max((size for size in sizes if isinstance(size, (int, float))), default=0)
    return most / GIB if most > 0 else None


def _archived(bucket: str, key: str, largest: int) -> Iterator[Report]:
    try:
        answer = s3().get_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
            return
        raise
    with answer["Body"] as body:
        if answer["ContentLength"] > largest:
            return
        with tarfile.open(fileobj=cast(IO[bytes], body), mode="r|gz") as archive:
            for member in archive:
                if member.isfile() and _NAME.fullmatch(member.name) and member.size <= _REPORT_BYTES:
                    file = archive.extractfile(member)
                    yield from _parsed(file.read() if file else b"")


def _loose(bucket: str, prefix: str) -> Iterator[Report]:
    listed = s3().list_objects_v2(Bucket=bucket, Prefix=f"{prefix}sagefit")
    for item in listed.get("Contents", []):
        if _NAME.fullmatch(item["Key"]) and item["Size"] <= _REPORT_BYTES:
            yield from _parsed(s3().get_object(Bucket=bucket, Key=item["Key"])["Body"].read())


def _parsed(text: bytes) -> Iterator[Report]:
    try:
        report = json.loads(text)
    except ValueError:
        return
    if isinstance(report, dict) and report.get("schema") == 1:
        yield report
