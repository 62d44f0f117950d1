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
_STEADY = ("weights", "optimizer", "communication")


def peak(phases: Phases) -> float:
    """The largest sum of parts of any phase."""
    return max(sum(parts.values()) for parts in phases.values())


def with_overhead(phases: Phases, ranks: int) -> Phases:
    """The same phases in device bytes, with the parts ``allocator`` and ``framework``."""
    nccl = NCCL if ranks > 1 else 0.0
    return {
        phase: {
            **parts,
            "allocator": (RESERVED - 1) * sum(size for part, size in parts.items() if part not in _STEADY),
            "framework": CONTEXT + nccl,
        }
        for phase, parts in phases.items()
    }
