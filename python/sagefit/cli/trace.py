"""``sagefit trace``: trace a job's own model, keep the result, show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.table import Table

from sagefit.console import err, out
from sagefit.job import load_job
from sagefit.memory import read
from sagefit.memory.trace.phases import device_phases, tensor_phases
from sagefit.memory.trace.run import Progress
from sagefit.memory.trace.run import trace as run_trace
from sagefit.memory.trace.store import Record
from sagefit.memory.workload import GIB, Phases, Placement, Workload

app = typer.Typer()


@app.command()
def trace(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A name in jobs/ or the path of a job file.")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    timeout: Annotated[
        int | None, typer.Option("--timeout", min=1, help="Seconds, instead of memory.trace.timeout.")
    ] = None,
) -> None:
    """Count the memory of the job's own model with PyTorch, without a GPU, for `size` to use."""
    loaded = load_job(job)
    workload = read.described(loaded)
    with _progress(loaded.name) as progress:
        record = run_trace(loaded, workload, loaded.hyperparameters, timeout=timeout, progress=progress)
    traced = replace(workload, model=record.traced)
    if as_json:
        print(json.dumps(_as_json(loaded.name, traced, record)))
    else:
        _show(loaded.name, traced, record)


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """What is being traced and for how long, on a terminal."""
    with err.status(f"tracing {name}") as status:
        yield lambda stage, seconds: status.update(f"tracing {name}: {stage}, {seconds:.0f} s")


def _peak(phases: Phases) -> tuple[str, float]:
    name = max(phases, key=lambda phase: sum(phases[phase].values()))
    return name, sum(phases[name].values()) / GIB


def _show(name: str, workload: Workload, record: Record) -> None:
    phases = tensor_phases(workload)
    parts = list(dict.fromkeys(part for found in phases.values() for part, size in found.items() if size))
    table = Table(
        title=f"{name}, batch {workload.micro_batch}, {workload.precision}: GiB of tensors", title_justify="left"
    )
    table.add_column("phase")
    for part in [*parts, "sum"]:
        table.add_column(part, justify="right")
    for phase, found in phases.items():
        table.add_row(phase, *(f"{found.get(part, 0) / GIB:.2f}" for part in parts), f"{sum(found.values()) / GIB:.2f}")
    out.print(table)
    phase, gib = _peak(device_phases(workload, Placement(1, 1)))
    out.print(
        f"on one GPU, with the CUDA context and the allocator: {gib:.2f} GiB ({phase}); size uses this from now on"
    )
    torch = record.result["torch"] if record.result else ""
    err.print(f"torch {torch}, {record.seconds} s, network: {record.network}", markup=False, soft_wrap=True)


def _as_json(name: str, workload: Workload, record: Record) -> dict[str, Any]:
    phase, gib = _peak(device_phases(workload, Placement(1, 1)))
    tensors = tensor_phases(workload)
    return {
        "job": name,
        "phases": {phase: {part: size / GIB for part, size in parts.items()} for phase, parts in tensors.items()},
        "device": {"phase": phase, "gib": gib},
        "seconds": record.seconds,
        "network": record.network,
        "traced": record.result,
    }
