"""Measured training runs: published peaks with the configuration that made them, as workloads of the planner."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from job_files import auto_job
from sagefit.memory import GIB, Diffusion, Placement, Transformer, Vision, Workload, diffusion, predict, vision
from sagefit.memory.presets import presets
from sagefit.memory.read import described

HERE = Path(__file__).parent
# The published figure leaves these parts out: "reserved" is what torch's allocator holds, "active" what tensors use.
LEFT_OUT = {"host": (), "device": (), "reserved": ("framework",), "active": ("framework", "allocator", "pools")}

SHAPE = ("params", "layers", "encoder_layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")


@dataclass(frozen=True)
class Run:
    """One measured run. ``measured`` is in GiB of one GPU, or of the host without GPUs, as ``metric`` counts it.

    ``drawn`` says that nobody chose its configuration: it was drawn by lot. ``memory`` is the memory block that
    describes it, where it was written as one.
    """

    id: str
    source: str
    model: str
    metric: str
    measured: float
    workload: Workload
    placement: Placement
    drawn: bool = False
    memory: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def comparable(self) -> float:
        """The point estimate in GiB, without the parts that the metric does not count."""
        prediction = predict(self.workload, self.placement)
        if prediction is None:
            raise ValueError(f"{self.id} has no prediction")
        parts = (prediction.gpu or prediction.host).parts
        return sum(size for part, size in parts.items() if part not in LEFT_OUT[self.metric])

    def beside(self) -> float:
        """What the bound adds to its ratio, in GiB, without what the metric does not count."""
        counted = isinstance(self.workload.model, Vision) and "framework" not in LEFT_OUT[self.metric]
        return vision.beside(self.placement) / GIB if counted else 0.0

    def bound(self, ratio: float) -> float:
        """The bound in GiB that a ratio makes."""
        return self.comparable() * ratio + self.beside()

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured / self.comparable()

    @property
    def project(self) -> str:
        """Who measured it: pages of one project are one source."""
        return self.source.split()[0].rpartition("/")[2]

    def needed(self) -> float:
        """GiB that a GPU needs for it: what was measured, and as predicted what the metric does not count."""
        prediction = predict(self.workload, self.placement)
        if prediction is None or prediction.gpu is None:
            raise ValueError(f"{self.id} has no prediction for a GPU")
        return self.measured + sum(prediction.gpu.parts.get(part, 0.0) for part in LEFT_OUT[self.metric])


def rows(name: str) -> list[dict[str, str]]:
    """The rows of one of the tables beside this file."""
    with (HERE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def published_runs() -> list[Run]:
    """All published runs: what bounds are made of."""
    return [*transformer_runs(), *other_runs(), *vision_runs()]


def transformer_runs() -> list[Run]:
    """The published runs whose configuration is known and can be said in a job file."""
    return [_run(row) for row in rows("transformers.csv") if not row["left_out"]]


def vision_runs() -> list[Run]:
    """The published runs of vision models; the timm sheet does not state precision and optimizer (timm's defaults)."""
    return [_vision_run(row) for row in rows("vision.csv") if not row["left_out"] and vision.known(row["model"])]


def cpu_runs() -> list[Run]:
    """The runs that `measure_cpu` measured on the CPU of this project's own machine."""
    return [_cpu_run(row) for row in rows("cpu.csv")]


def gpu_runs() -> list[Run]:
    """The runs that `measure_gpu` measured on a GPU and that a job file can describe.

    Rank 0 of several has no buffers of NCCL there, so a sharded run is compared by what the allocator reserves.
    """
    return [_gpu_run(number, row) for number, row in enumerate(gpu_rows(), 1) if not unsaid(row)]


def gpu_rows() -> list[dict[str, str]]:
    """The rows of ``gpu.csv`` whose runs had all the memory that they asked for."""
    return [row for row in rows("gpu.csv") if not row["limit_gib"]]


def other_runs() -> list[Run]:
    """Published runs that nobody looked at before their first score, each with the memory block that describes it.

    Somebody else collected them, and wrote the blocks except those of diffusion models. Sharding over several GPUs is
    FSDP or DDP there, as its row says. All ran on torch 2.0 or later, as the image of the job here has it.
    """
    return [_other_run(row) for row in rows("others.csv")]


def fresh_runs() -> list[Run]:
    """Published runs of projects that no formula and no bound was made with, as somebody else described them.

    They stay apart, so that they tell what a job of an unknown project may expect.
    """
    return [_other_run(row) for row in rows("fresh.csv") if row["memory"] != "{}"]


def _other_run(row: dict[str, str]) -> Run:
    memory = json.loads(row["memory"])
    job = auto_job({"memory": memory, "hyperparameters": None})
    gpus = int(row["gpus"])
    return Run(
        id=row["id"],
        source=row["source"],
        model=row["model"],
        metric=row["metric"],
        measured=float(row["measured_gib"]),
        workload=described(job),
        placement=Placement(hosts=max(1, gpus // 8), gpus_per_host=min(gpus, 8), gpu=row["gpu"]),
        memory=memory,
    )


def _seen(row: dict[str, str]) -> dict[str, Any]:
    """What a vision-language model saw: patches of 14 pixels, four of which are one token of a square image.

    Adapters on attention alone do not reach the tower of Qwen2.5-VL, whose queries, keys and values are one layer.
    """
    if row["kind"] != "vision-language":
        return {}
    tokens = (int(row["image_size"]) // 28) ** 2
    return {"image_tokens": tokens, "vision_tower": "trained" if row["lora_targets"] == "all-linear" else "frozen"}


def unsaid(row: dict[str, str]) -> str:
    """Why a job file cannot describe a row of ``gpu.csv``; empty where it can."""
    if row["kind"] == "diffusion" and not diffusion.known(row["model"]):
        return "denoisers that could not be traced"
    return ""


# Models of gpu_models.py under the names that a job file has for them; segmenters had 21 classes.
_NAMES = {"detr_resnet50": "detr-resnet-50", "yolos_small": "yolos-small", "rtdetr_r50": "rtdetr_r50vd"}
_CLASSES = 21
# FSDP is sharding of everything, or of all but the weights where they stay gathered after the forward pass.
_SHARDING = {"yes": "fsdp", "no": "fsdp-shard-grad-op", "": "none"}


# What `gpu_training` tells the Trainer to take for some optimizers.
_TRAINER_STEPS = {"adamw": "fused", "lion": "bitsandbytes"}


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _gpu_run(number: int, row: dict[str, str]) -> Run:
    common: dict[str, Any] = {
        "gradient_checkpointing": row["gradient_checkpointing"] == "yes",
        **_values(row, int, "micro_batch", "accumulation"),
        **_values(row, str, "precision", "optimizer", "stack"),
        "torch": _release(row["torch"]),
        "step": _TRAINER_STEPS.get(row["optimizer"], "foreach") if row["stack"].startswith("hf-") else "foreach",
    }
    if row["kind"] == "vision":
        # torchvision freezes nothing of a backbone without weights, whatever it is asked to train.
        model = Vision(_NAMES.get(row["model"], row["model"]), int(row["image_size"]), pretrained=False)
        if vision.resolve(model).task == "segmentation":
            model = replace(model, classes=_CLASSES)
        workload = Workload(model=model, **common)
    elif row["kind"] == "diffusion":
        side = int(row["image_size"])
        workload = Workload(
            model=Diffusion(row["model"], side, side, int(row["frames"] or 1), "cached"),
            **common,
            **_values(row, int, "lora_rank"),
            **_values(row, str, "method", "lora_targets", "base_dtype"),
        )
    else:
        preset = presets()[row["model"].lower()]
        head = "classification" if preset.model.architecture == "encoder" else "lm"
        workload = Workload(
            model=replace(preset.model, head=cast("Any", head)),
            encoder_length=preset.sequence or None,
            sharding=cast("Any", _SHARDING[row["reshard"]]),
            **common,
            **_values(row, int, "sequence_length", "lora_rank", "world_size"),
            **_values(row, str, "method", "lora_targets", "base_dtype", "attention"),
            **_seen(row),
            expandable_segments=row["allocator"] == "expandable",
        )
    ranks = int(row["world_size"])
    metric, outside = ("reserved", 0.0) if ranks > 1 else ("device", float(row["outside_gib"]))
    return Run(
        id=f"G{number:03}",
        source="measure_gpu.py",
        model=row["model"],
        metric=metric,
        measured=float(row["reserved_gib"]) + outside,
        workload=workload,
        placement=Placement(hosts=max(1, ranks // 8), gpus_per_host=min(ranks, 8), gpu=row["gpu"].split()[-1]),
        drawn=row["series"] == "drawn",
    )


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
