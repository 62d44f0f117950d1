"""All that the result of a trace depends on, and the name of the file that keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sagefit.job.memory_model import Knob
from sagefit.job.model import Job
from sagefit.memory import knobs
from sagefit.memory.workload import Vision, Workload

FORMAT = 1  # of what the tracing program counts: a new number makes all that is kept out of date
#: Fields that do not change the traced bytes, so that another value needs no new trace.
_COVERED: tuple[Knob, ...] = (
    "micro_batch",
    "accumulation",
    "gradient_checkpointing",
    "evaluation_batch",
    "optimizer",
    "workers",
    "prefetch",
    "in_memory",
)


@dataclass(frozen=True)
class Inputs:
    """The inputs of a trace, by the names that people know them by. ``code`` is a digest."""

    code: str
    function: str
    method: str
    precision: str
    sequence_length: int
    image_size: int | None
    hyperparameters: Mapping[str, Any]
    format: int = FORMAT

    @property
    def key(self) -> str:
        """A digest of everything."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def inputs_of(job: Job, workload: Workload, hyperparameters: Mapping[str, Any]) -> Inputs:
    """What a trace of ``workload`` reads. ``job`` has ``memory.trace`` and ``code``."""
    assert job.memory and job.memory.trace and job.code  # noqa: S101, PT018 - the rules of the job file
    covered = {knobs.name_of(job, knob, hyperparameters) for knob in _COVERED}
    return Inputs(
        code=folder_digest(job.local(job.code.source_dir)),
        function=job.memory.trace.function,
        method=workload.method,
        precision=workload.precision,
        sequence_length=workload.sequence_length,
        image_size=_image_size(workload, hyperparameters),
        hyperparameters={name: value for name, value in sorted(hyperparameters.items()) if name not in covered},
    )


def folder_digest(folder: Path) -> str:
    """A digest of every file below ``folder``. Files are read again only when their size or time has changed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return _digest(tuple((path, *_stamp(path)) for path in files), folder)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=64)
def _digest(files: tuple[tuple[Path, int, int], ...], folder: Path) -> str:
    digest = hashlib.sha256()
    for path, size, _ in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _image_size(workload: Workload, hyperparameters: Mapping[str, Any]) -> int | None:
    if isinstance(workload.model, Vision):
        return workload.model.image_size
    size = hyperparameters.get("image_size")
    return size if isinstance(size, int) else None
