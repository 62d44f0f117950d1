"""Peak memory of a host whose CPU trains, by phase and part, in bytes: without a GPU the host holds all tensors.

Tensors are those of a GPU, with these differences: no CUDA context, another allocator, an optimizer that updates one
parameter after the other, and attention that keeps its scores when it uses dropout.
"""

from __future__ import annotations

from dataclasses import replace

from sagefit.job.memory_model import Stack
from sagefit.memory import activations, diffusion, objectives, transformer, vision
from sagefit.memory.overhead import peak
from sagefit.memory.stacks import StackProfile, profile_of, stacks_with
from sagefit.memory.trace import tensor_phases
from sagefit.memory.workload import GIB, Diffusion, Phases, Placement, Transformer, Vision, Workload

# Memory that glibc's malloc has from the kernel and cannot use, for each byte of activations of one layer, without
# and with checkpointing, which frees and allocates them once more between blocks that stay. Blocks of less than 32 MiB
# are kept when they are freed (mallopt(3): M_MMAP_THRESHOLD grows with what is freed, up to that), so it is at most
# HELD_MOST. With MALLOC_MMAP_THRESHOLD_ set in the environment the threshold stays, and all goes back.
# All three were read off the runs in tests/accuracy/cpu.csv.
HELD, HELD_CHECKPOINTED = 1.0, 2.5
HELD_MOST = 0.15 * GIB
# Gradients of activations that live at once, for each byte of activations of one layer (profiled: 0.18 to 0.26).
GRADIENTS = 0.2
# Elements of the largest matrix that AdamW computes with, one parameter after the other (torch.optim, foreach is for
# GPUs only): the square root of the second moment, and that over its correction.
STEP = 2


def together(on_host: Phases, workload: Workload, placement: Placement) -> Phases:
    """``on_host``, what the host holds anyway, with the tensors of the model beside it."""
    tensors = _tensors(workload, placement)
    training = on_host["step"]
    phases = {"load": on_host["load"]}  # the copies of the model are there already
    for phase, parts in tensors.items():
        if phase != "load":
            phases[phase] = on_host.get(phase, training) | parts
    if "checkpoint" not in tensors:
        phases["checkpoint"] = on_host["checkpoint"] | _kept(tensors["step"])
    return phases


def _kept(step: dict[str, float]) -> dict[str, float]:
    """The memory of the optimizer's step that stays between two steps."""
    return {part: size for part, size in step.items() if part not in ("gradients", "temporaries", "allocator")}


def _tensors(workload: Workload, placement: Placement) -> Phases:
    if isinstance(workload.model, Transformer):
        return _transformer(workload.model, workload, placement)
    if isinstance(workload.model, Vision):
        return vision.tensor_phases(workload, placement)
    if isinstance(workload.model, Diffusion):
        return diffusion.tensor_phases(workload, placement)
    return tensor_phases(workload)


def _transformer(model: Transformer, workload: Workload, placement: Placement) -> Phases:
    if model.dropout and workload.attention != "eager":
        # CPUs have a fused kernel for attention without dropout only (aten/native/transformers, sdp_utils_cpp).
        workload = replace(workload, attention="eager")
    stacks: tuple[Stack, ...] = (workload.stack,)
    if workload.stack == "unknown":
        stacks = stacks_with(workload.sharding, model.architecture)
    return max(
        (_of_stack(model, workload, placement, profile_of(stack, workload.sharding)) for stack in stacks), key=peak
    )


def _of_stack(model: Transformer, workload: Workload, placement: Placement, profile: StackProfile) -> Phases:
    profile = replace(profile, step=0, old_torch=False)
    phases = transformer.tensor_phases(model, workload, placement, profile, gradients=False)
    towers = activations.towers(model, workload)
    sequences = workload.micro_batch * objectives.NEEDS[workload.objective].sequences
    sizes = [sequences * tower.length for tower in towers]
    masks = [tokens * _masks(tower.model, workload, tower) for tokens, tower in zip(sizes, towers, strict=True)]
    layers = [
        tokens * activations.layer(tower.model, workload, profile, tower) + mask
        for tokens, tower, mask in zip(sizes, towers, masks, strict=True)
    ]
    kept = (
        max(masks)
        if workload.gradient_checkpointing
        else sum(mask * tower.layers for mask, tower in zip(masks, towers, strict=True))
    )
    for phase in ("forward", "backward"):
        phases[phase]["activations"] += kept
        phases[phase]["temporaries"] += GRADIENTS * max(layers)
        phases[phase]["allocator"] = _held(max(layers), workload)
    if workload.optimizer == "adamw":
        largest = model.hidden * max(model.vocab, model.ffn)
        phases["step"]["temporaries"] = STEP * 4.0 * largest if workload.method == "full" else 0.0
    return phases


def _held(layer: float, workload: Workload) -> float:
    """What malloc holds and cannot use."""
    if workload.frees_at_once:
        return 0.0
    return min(HELD_MOST, layer) * (HELD_CHECKPOINTED if workload.gradient_checkpointing else HELD)


def _masks(model: Transformer, workload: Workload, tower: activations.Tower) -> float:
    """Bytes for each token of a layer's dropout masks above those of a GPU, which have one for each element.

    A CPU multiplies with a mask of the input's type (aten/native/Dropout.cpp, ``_dropout_impl``).
    """
    if not model.dropout:
        return 0.0
    wider = activations.element_size(workload) - 1
    return float(wider * (2 * model.hidden + model.heads * (tower.length + tower.other)))
