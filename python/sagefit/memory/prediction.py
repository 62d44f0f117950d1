"""From a workload and a placement to a prediction."""

from __future__ import annotations

from functools import lru_cache

from sagefit.memory import bounds, cpu, diffusion, host, transformer, vision
from sagefit.memory.learned import corrected
from sagefit.memory.stacks import PROFILES
from sagefit.memory.trace import device_phases
from sagefit.memory.workload import (
    GIB,
    Diffusion,
    Estimate,
    Measured,
    Phases,
    Placement,
    Prediction,
    Tabular,
    Traced,
    Transformer,
    Vision,
    Workload,
)


def predict(workload: Workload, placement: Placement) -> Prediction | None:
    """Predict the peak memory of one GPU and of one host; None when nothing is known of the model.

    A model that is trained without a GPU keeps its tensors in host memory. Peaks of earlier runs count for more than
    formulas: see `learned.corrected`.
    """
    prediction = _predicted(workload, placement)
    return corrected(prediction, workload, placement, _predicted) if prediction and workload.peaks else prediction


@lru_cache(maxsize=4096)
def _predicted(workload: Workload, placement: Placement) -> Prediction | None:
    model = workload.model
    if model is None:
        return None
    if isinstance(model, Measured):
        return _measured(workload, model, placement)
    on_host, host_ratio = host.phases(workload, placement), bounds.host_ratio(workload)
    gpu = None
    if isinstance(model, Transformer | Vision | Diffusion | Traced):
        if placement.gpus_per_host:
            beside = vision.beside(placement) if isinstance(model, Vision) else 0.0
            gpu = _estimate(_gpu_phases(workload, placement), bounds.gpu_ratio(workload), beside / GIB)
        else:
            on_host, host_ratio = cpu.together(on_host, workload, placement), bounds.cpu_ratio(workload)
    return Prediction(
        host=_estimate(on_host, host_ratio),
        gpu=gpu,
        assumptions=workload.notes + _assumptions(workload, placement),
        source="trace" if isinstance(model, Traced) else "formula",
    )


def _gpu_phases(workload: Workload, placement: Placement) -> Phases:
    if isinstance(workload.model, Transformer):
        return transformer.gpu_phases(workload.model, workload, placement)
    if isinstance(workload.model, Diffusion):
        return diffusion.gpu_phases(workload, placement)
    if isinstance(workload.model, Traced):
        return device_phases(workload, placement)
    return vision.gpu_phases(workload, placement)


def _estimate(phases: Phases, ratio: float, beside: float = 0.0) -> Estimate:
    totals = {phase: sum(parts.values()) / GIB for phase, parts in phases.items()}
    binding = max(totals, key=lambda phase: totals[phase])
    parts = {part: size / GIB for part, size in phases[binding].items() if size > 0}
    point = sum(parts.values())
    least = max(totals[phase] - each.get("pools", 0.0) / GIB for phase, each in phases.items())
    return Estimate(point, point * ratio + beside, parts, binding, totals, max(0.0, point - least), beside)


def _measured(workload: Workload, model: Measured, placement: Placement) -> Prediction:
    def estimate(gib: float) -> Estimate:
        return _estimate({"run": {"measured": gib * GIB}}, bounds.MEASURED)

    gpu = estimate(model.gpu_gib) if model.gpu_gib and placement.gpus_per_host else None
    return Prediction(estimate(model.host_gib), gpu, workload.notes, "measured")


def _assumptions(workload: Workload, placement: Placement) -> tuple[str, ...]:
    model = workload.model
    notes = [*vision.notes(workload), *diffusion.notes(workload)]
    if isinstance(model, Transformer):
        if workload.stack == "unknown":
            worst = transformer.worst_stack(model, workload, placement)
            notes.append(f"the stack is unknown, so the worst one counts: {worst}; memory.stack names yours")
        if model.position_bias and workload.attention != "eager":
            notes.append(f"attention is computed eagerly: {model.name or 'this model'} adds positions to its scores")
        if workload.method == "lora" and workload.base_dtype == "default" and _loads_in_32_bits(workload):
            notes.append(
                f"the frozen model is loaded in fp32, as {workload.stack} does: memory.base_dtype: 16-bit if the "
                "script passes torch_dtype"
            )
        if workload.gradient_checkpointing and workload.stack == "torchtitan" and workload.checkpointing == "default":
            notes.append("checkpointing is selective, torchtitan's default; memory.gradient_checkpointing: full is not")
        if model.architecture == "encoder-decoder" and workload.encoder_length is None:
            notes.append("input and output are as long as sequence_length")
    if isinstance(model, Traced) and workload.objective != "supervised":
        notes.append("a trace counts what its function does; a second model or a sampler beside it is not counted")
    if workload.accumulation > 1:
        notes.append(f"gradients are kept over {workload.accumulation} micro-batches; activations are those of one")
    if not isinstance(model, Tabular) and workload.ranks(placement) > 1 and workload.sharding == "none":
        where = "GPUs" if placement.gpus else "hosts"
        notes.append(f"every one of {workload.ranks(placement)} {where} holds the whole model: memory.sharding is none")
    return tuple(notes)


def _loads_in_32_bits(workload: Workload) -> bool:
    known = PROFILES.get(workload.stack)
    return workload.precision.endswith("mixed") and known is not None and not known.base_16_bit


def forget() -> None:
    """Predict anew what was predicted already: after a table or a constant has changed."""
    _predicted.cache_clear()
    transformer.worst_stack.cache_clear()
