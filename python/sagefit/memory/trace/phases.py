"""From traced bytes to what a GPU shows, for any batch, accumulation, checkpointing and optimizer that was traced."""

from __future__ import annotations

from sagefit.memory.overhead import NCCL, with_overhead
from sagefit.memory.states import MOMENTS
from sagefit.memory.workload import Phases, Placement, Traced, TracedPoint, Workload

MIB = 2**20
# Device bytes of vision models over traced bytes: least squares over 34 timm models on an A100 40 GB in the
# measurements published with GPUMemNet (2602.17817), rows whose memory grows with the batch. The constant holds the
# CUDA context and cuDNN's workspaces.
VISION_FACTOR = 1.069
VISION_CONSTANT = 1968 * MIB


def device_phases(workload: Workload, placement: Placement) -> Phases:
    """Bytes of one GPU by phase and part, those of the allocator and of the CUDA context among them."""
    traced = _model(workload)
    phases = tensor_phases(workload)
    ranks = workload.ranks(placement)
    if ranks > 1:
        # Buckets of DistributedDataParallel hold a second copy of all gradients.
        phases["backward"]["communication"] = float(traced.gradients)
    if traced.family == "transformer":
        return with_overhead(phases, ranks)
    nccl = NCCL if ranks > 1 else 0.0
    return {
        phase: {
            **parts,
            "allocator": (VISION_FACTOR - 1) * sum(parts.values()),
            "framework": VISION_CONSTANT + nccl,
        }
        for phase, parts in phases.items()
    }


def tensor_phases(workload: Workload) -> Phases:
    """Bytes of tensors alone, as PyTorch's allocator would count them as active."""
    traced = _model(workload)
    optimizer = _optimizer(traced, workload)
    state = {"optimizer": float(optimizer["state"])}
    kind = "accumulating" if workload.accumulation > 1 else "single"
    training = _at(workload, kind, workload.micro_batch)
    batch = {"batch": training["forward"].get("batch", 0.0)}
    base = {"weights": float(traced.weights), "buffers": float(traced.buffers)}
    phases: Phases = {
        "load": base,
        "forward": training["forward"] | state,
        "backward": training["backward"] | state,
        "step": base
        | batch
        | state
        | {"gradients": float(traced.gradients), "temporaries": float(optimizer["temporaries"])},
    }
    if workload.evaluation_batch:
        phases["evaluation"] = _at(workload, "evaluation", workload.evaluation_batch)["evaluation"] | state
    return phases


def _optimizer(traced: Traced, workload: Workload) -> dict[str, int]:
    """State and temporaries. Kahan summation has one state more than AdamW, as large as momentum is."""
    if workload.optimizer != "adamw-kahan":
        found = traced.optimizers[workload.optimizer]
        return found if workload.step == "foreach" or workload.optimizer not in MOMENTS else found | {"temporaries": 0}
    adamw, momentum = traced.optimizers["adamw"], traced.optimizers["sgd-momentum"]
    return {"state": adamw["state"] + momentum["state"], "temporaries": adamw["temporaries"]}


def points(traced: Traced, *, checkpointing: bool) -> list[TracedPoint]:
    """The traced batches with or without checkpointing, the smallest first; empty when it was not traced."""
    found = [point for point in traced.points if point.checkpointing == checkpointing]
    return sorted(found, key=lambda point: point.batch)


def _model(workload: Workload) -> Traced:
    assert isinstance(workload.model, Traced)  # noqa: S101 - the caller chose this module by that
    return workload.model


def _at(workload: Workload, kind: str, batch: int) -> Phases:
    """The peaks at ``batch``: a straight line through the two traced batches, part by part.

    A peak is the larger of several moments, each of which grows in a line, so between the two the line is never low.
    """
    small, large = points(_model(workload), checkpointing=workload.gradient_checkpointing)
    share = (batch - small.batch) / (large.batch - small.batch)
    return {
        phase: {
            part: max(0.0, low.get(part, 0) + share * (high.get(part, 0) - low.get(part, 0))) for part in low | high
        }
        for phase, low in small.peaks[kind].items()
        for high in [large.peaks[kind][phase]]
    }
