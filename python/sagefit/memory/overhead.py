"""From tensors to what the device shows: the CUDA context, the caching allocator and communication."""

from __future__ import annotations

from sagefit.memory.workload import GIB, Phases

# CUDA context, loaded kernels and cuBLAS workspace of one process. Published: 0.47 GiB lazily loaded to 0.92 on A100,
# 1.31 on V100, Hopper 0.4 above Ada; workspaces of 8 to 32 MiB for each handle.
CONTEXT = 1.0 * GIB
# NCCL's buffers and the context of collectives. Published: 0.55 to 2.00 GiB after distributed initialisation.
NCCL = 1.0 * GIB
# What the caching allocator holds for each byte of activations and temporaries, which change size from step to step.
# Published ratios of reserved to allocated memory: 1.04 to 1.49; weights, optimizer states and buffers of
# communication are allocated once.
RESERVED = 1.06
_STEADY = ("weights", "optimizer", "communication", "second model", "vision tower", "sampler")
_TRAINING = ("forward", "backward", "step")


def peak(phases: Phases) -> float:
    """The largest sum of parts of any phase."""
    return max(sum(parts.values()) for parts in phases.values())


def with_overhead(
    phases: Phases, ranks: int, *, moments: Phases | None = None, pools_within: float = 0.0, frees: bool = False
) -> Phases:
    """The same phases in device bytes, with the parts ``allocator``, ``framework`` and ``pools``.

    ``frees`` says that gradients are freed after each step. Their blocks stay in the cache, where activations use them
    again, but logits do not fit into them. A rank of FSDP comes to hold the most of each part, although no moment needs
    all of it: FSDP gathers and reduces on streams of their own, and the allocator reuses a block only on the stream
    that had it; a shard has sizes that nothing else has. What a phase does not need of that is given back before a run
    dies. ``moments`` are all that its training goes through, where there are pools; ``pools_within``, in bytes, is the
    most that the whole may be then.
    """
    framework = CONTEXT + (NCCL if ranks > 1 else 0.0)
    held = {phase: {**parts, "allocator": _held(parts)} for phase, parts in phases.items()}
    pools = 0.0
    if moments:
        needed = peak({phase: held[phase] for phase in _TRAINING})
        pools = max(0.0, min(_most(moments), pools_within - framework) - needed)
    of_each = dict.fromkeys(_TRAINING, pools)
    if frees:
        of_each["forward"] = max(pools, _cached(phases))
    return {phase: {**parts, "pools": of_each.get(phase, 0.0), "framework": framework} for phase, parts in held.items()}


def _held(parts: dict[str, float]) -> float:
    return (RESERVED - 1) * sum(size for part, size in parts.items() if part not in _STEADY)


def _cached(phases: Phases) -> float:
    """What freed gradients leave in the cache that the forward pass does not use."""
    forward, freed = phases["forward"], phases["step"]["gradients"] - phases["forward"]["gradients"]
    return min(forward["logits"], max(0.0, freed - forward["activations"]))


def _most(moments: Phases) -> float:
    """What a rank holds that holds the most of each part."""
    names = {part for parts in moments.values() for part in parts}
    most = {part: max(parts.get(part, 0.0) for parts in moments.values()) for part in names}
    return sum(most.values()) + _held(most)
