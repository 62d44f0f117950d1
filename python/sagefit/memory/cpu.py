"""Peak memory of a host whose CPU trains, by phase and part, in bytes: there is no GPU, and all tensors are the host's.

Tensors are those of a GPU, with what differs there: no CUDA context, another allocator, an optimizer that takes one
parameter after the other, and attention that keeps its scores when it drops some of them.
"""

from __future__ import annotations

from dataclasses import replace

from sagefit.memory import activations, transformer, vision
from sagefit.memory.overhead import peak
from sagefit.memory.stacks import PROFILES, StackProfile
from sagefit.memory.trace import tensor_phases
from sagefit.memory.workload import Phases, Placement, Stack, Transformer, Vision, Workload

# What glibc's malloc has from the kernel and cannot use, for each byte of activations of one layer. Freed blocks of
# less than 32 MiB are kept (M_MMAP_THRESHOLD grows with what is freed: mallopt(3)), and those that lie below a block
# in use cannot go back. With the threshold fixed, which switches that off, it is gone.
HELD = 1.0


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
    """What of the optimizer's step is there between two steps."""
    return {part: size for part, size in step.items() if part not in ("gradients", "temporaries", "allocator")}


def _tensors(workload: Workload, placement: Placement) -> Phases:
    if isinstance(workload.model, Transformer):
        return _transformer(workload.model, workload, placement)
    if isinstance(workload.model, Vision):
        return vision.tensor_phases(workload, placement)
    return tensor_phases(workload)


def _transformer(model: Transformer, workload: Workload, placement: Placement) -> Phases:
    if model.dropout and workload.attention != "eager":
        # CPUs have a fused kernel for attention without dropout only (aten/native/transformers, sdp_utils_cpp).
        workload = replace(workload, attention="eager")
    stacks: list[Stack] = list(PROFILES) if workload.stack == "unknown" else [workload.stack]
    return max((_of_stack(model, workload, placement, PROFILES[stack]) for stack in stacks), key=peak)


def _of_stack(model: Transformer, workload: Workload, placement: Placement, profile: StackProfile) -> Phases:
    profile = replace(profile, step=0, old_torch=False)
    phases = transformer.tensor_phases(model, workload, placement, profile)
    layer = max(
        activations.layer(model, workload, profile, tower) * workload.micro_batch * tower.length
        for tower in activations.towers(model, workload)
    )
    for phase in ("forward", "backward"):
        phases[phase]["allocator"] = HELD * layer
    return phases
