"""Keeps the outcomes of traces beside the job file, and finds the one that a workload may use.

They are committed with the job, so a plan's memory does not depend on the machine that rendered it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sagefit.job.model import Job
from sagefit.memory.trace.inputs import Inputs, inputs_of
from sagefit.memory.trace.phases import points
from sagefit.memory.workload import Traced, TracedPoint, Workload


@dataclass(frozen=True)
class Record:
    """One trace: its inputs, when the model could be traced its ``result``, else the ``refusal``; and how it ran."""

    inputs: dict[str, Any]
    result: dict[str, Any] | None
    refusal: str
    seconds: float
    network: str

    @property
    def traced(self) -> Traced | None:
        """The result in the planner's terms."""
        if self.result is None:
            return None
        return Traced(
            key=Inputs(**self.inputs).key,
            points=tuple(TracedPoint(**point) for point in self.result["points"]),
            **{name: value for name, value in self.result.items() if name not in ("points", "torch")},
        )


def folder(job: Job) -> Path:
    """Where traces of ``job`` lie, one file for each set of inputs: ``jobs/NAME.trace/``."""
    return job.path.with_suffix(".trace")


def save(job: Job, record: Record) -> Path:
    """Keep ``record``. Records of other code are deleted, because no lookup would find them again."""
    path = folder(job) / f"{Inputs(**record.inputs).key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.glob("*.json"):
        kept = _read(other)
        if kept is None or kept.inputs["code"] != record.inputs["code"]:
            other.unlink(missing_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(asdict(record)), encoding="utf-8")
    partial.replace(path)
    return path


def with_trace(job: Job, workload: Workload, hyperparameters: Mapping[str, Any]) -> Workload:
    """``workload`` with the traced model in place of the described one; or as it is, with the reason among its notes.

    ``hyperparameters`` are those of the attempt, merged over the job's. A job without ``memory.trace`` costs nothing.
    """
    if job.memory is None or job.memory.trace is None or job.code is None:
        return workload
    found = lookup(job, workload, hyperparameters)
    if isinstance(found, Traced):
        note = f"tensors are those of a trace of {job.memory.trace.function} ({job.code.source_dir})"
        return replace(workload, model=found, notes=(*workload.notes, note))
    instead = "" if workload.model is None else ", so the closed form counts"
    return replace(workload, notes=(*workload.notes, f"not traced{instead}: {found}"))


def lookup(job: Job, workload: Workload, hyperparameters: Mapping[str, Any]) -> Traced | str:
    """The trace of exactly these inputs, or why there is none that may be used."""
    reason = untraceable(workload)
    if reason:
        return reason
    inputs = inputs_of(job, workload, hyperparameters)
    record = _read(folder(job) / f"{inputs.key}.json")
    if record is None:
        return _missing(job, inputs)
    traced = record.traced
    if traced is None:
        return record.refusal
    if not points(traced, checkpointing=workload.gradient_checkpointing):
        return "the traced model has no gradient checkpointing"
    return traced


def untraceable(workload: Workload) -> str:
    """Why no trace can stand for ``workload``; empty when one can."""
    if workload.sharding != "none":
        return f"a trace is of one GPU that holds all, and memory.sharding is {workload.sharding}"
    if workload.cpu_offload != "none":
        return f"a trace is of one GPU that holds all, and memory.cpu_offload is {workload.cpu_offload}"
    if workload.method == "qlora":
        return "4-bit weights have kernels that FakeTensor does not know, and memory.method is qlora"
    return ""


def _missing(job: Job, inputs: Inputs) -> str:
    from sagefit.console import command  # loads rich, which nobody needs who finds a trace or asks for none

    run = command("trace", job.reference)
    others = sorted(folder(job).glob("*.json"), key=lambda path: path.stat().st_mtime)
    newest = _read(others[-1]) if others else None
    if newest is None:
        return f"no traced result yet; run {run}"
    changed = _changed(newest.inputs, asdict(inputs))
    return f"the traced result is out of date ({', '.join(changed)} changed since); run {run}"


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Names of what differs; of hyperparameters, which."""
    names = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    if "hyperparameters" in names:
        names.remove("hyperparameters")
        names += [f"hyperparameters.{name}" for name in _changed(before["hyperparameters"], now["hyperparameters"])]
    return names


def _read(path: Path) -> Record | None:
    """A record; None for a file that is not there or that another version wrote."""
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
