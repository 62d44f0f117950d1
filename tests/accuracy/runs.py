"""Measured training runs: published peaks with the configuration that made them, as workloads of the planner."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sagefit.memory import Placement, Transformer, Vision, Workload, predict, vision

HERE = Path(__file__).parent
# The published figure leaves these parts out: "reserved" is what torch's allocator holds, "active" what tensors use.
LEFT_OUT = {"host": (), "device": (), "reserved": ("framework",), "active": ("framework", "allocator")}

SHAPE = ("params", "layers", "encoder_layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")


@dataclass(frozen=True)
class Run:
    """One measured run. ``measured`` is in GiB of one GPU, or of the host without GPUs, as ``metric`` counts it."""

    id: str
    source: str
    model: str
    metric: str
    measured: float
    workload: Workload
    placement: Placement

    def comparable(self) -> float:
        """The point estimate in GiB, without the parts that the metric does not count."""
        prediction = predict(self.workload, self.placement)
        if prediction is None:
            raise ValueError(f"{self.id} has no prediction")
        parts = (prediction.gpu or prediction.host).parts
        return sum(size for part, size in parts.items() if part not in LEFT_OUT[self.metric])

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured / self.comparable()


def rows(name: str) -> list[dict[str, str]]:
    """The rows of one of the tables beside this file."""
    with (HERE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def transformer_runs() -> list[Run]:
    """The published runs whose configuration is known and can be said in a job file."""
    return [_run(row) for row in rows("transformers.csv") if not row["left_out"]]


def vision_runs() -> list[Run]:
    """The published runs of vision models; the timm sheet does not state precision and optimizer (timm's defaults)."""
    return [_vision_run(row) for row in rows("vision.csv") if not row["left_out"] and vision.known(row["model"])]


def cpu_runs() -> list[Run]:
    """The runs that `measure_cpu` measured on the CPU of this project's own machine."""
    return [_cpu_run(row) for row in rows("cpu.csv")]


def workload_of(row: dict[str, str]) -> Workload:
    """The workload of a row of ``transformers.csv`` or ``verdicts.csv``."""
    model = Transformer(
        name=row["model"],
        gated=row["mlp"] == "gated",
        **_values(row, int, *SHAPE),
        **_values(row, _yes, "dropout", "tied", "position_bias"),
        **_values(row, str, "architecture", "norm", "head"),
    )
    return Workload(
        model=model,
        lora_rank=int(row["lora_rank"] or 16),
        gradient_checkpointing=row["gradient_checkpointing"] == "yes",
        **_values(row, int, "micro_batch", "sequence_length", "accumulation"),
        **_values(row, str, "method", "precision", "optimizer", "attention", "sharding", "stack", "loss"),
    )


def placement_of(row: dict[str, str]) -> Placement:
    """Hosts of eight GPUs, or one with fewer."""
    gpus = int(row["gpus"])
    return Placement(hosts=max(1, gpus // 8), gpus_per_host=min(gpus, 8), gpu=row["gpu"])


def _values(row: dict[str, str], read: Callable[[str], object], *names: str) -> dict[str, Any]:
    return {name: read(row[name]) for name in names}


def _yes(text: str) -> bool:
    return text == "yes"


def _vision_run(row: dict[str, str]) -> Run:
    return Run(
        id=row["id"],
        source=row["source"],
        model=row["model"],
        metric=row["metric"],
        measured=float(row["measured_gib"]),
        workload=_vision_workload(row),
        placement=Placement(1, 1, row["gpu"]),
    )


def _cpu_run(row: dict[str, str]) -> Run:
    if row["family"] == "vision":
        workload = _vision_workload(row, accumulation=int(row["accumulation"]))
    else:
        workload = workload_of(row)
    workload = replace(workload, frees_at_once=row["malloc"] == "fixed", hugging_face=row["image"] == "huggingface")
    return Run(row["id"], "measure_cpu.py", row["model"], "host", float(row["measured_gib"]), workload, Placement())


def _vision_workload(row: dict[str, str], **others: Any) -> Workload:
    return Workload(
        model=Vision(row["model"], int(row["image_size"])),
        micro_batch=int(row["micro_batch"]),
        stack="plain-torch",
        **_values(row, str, "precision", "optimizer"),
        **others,
    )


def _run(row: dict[str, str]) -> Run:
    return Run(
        id=row["id"],
        source=row["source"],
        model=row["model"],
        metric=row["metric"],
        measured=float(row["measured_gib"]),
        workload=workload_of(row),
        placement=placement_of(row),
    )
