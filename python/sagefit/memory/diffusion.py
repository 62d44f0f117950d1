"""Peak GPU memory of training the denoiser of a diffusion model, by phase and part, in bytes.

``diffusion_models.csv`` holds the moments of a traced training step that can be its peak: what is alive then is a sum
of gradients, of what does not depend on the batch, and of what grows with it and with the positions of a latent. Here
it is read at the batch and size of the workload, with the states of its optimizer. Attention is fused, so nothing grows
with the square of the positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sagefit.job.memory_model import Stack
from sagefit.memory.diffusion_models import Denoiser, known, resolve, size, table
from sagefit.memory.overhead import peak, with_overhead
from sagefit.memory.stacks import PROFILES, profile_of, stacks_with
from sagefit.memory.states import State, model_state, quantized
from sagefit.memory.workload import Diffusion, Kronecker, Phases, Placement, Workload

__all__ = [
    "encoder_bytes",
    "gpu_phases",
    "known",
    "names",
    "notes",
    "parameters",
    "resolve",
    "sample_bytes",
    "size",
    "tensor_phases",
]

# An autoencoder makes latents of pixels without gradients. Its first layers have 128 channels for each pixel in 16
# bits, and the input and output of two of them are there at once.
ENCODING = 4 * 128 * 2
# Denoisers have 24 to 60 blocks of one size; a sharded one gathers a block at a time.
BLOCKS = 24
# Kronecker products were traced with this factor.
TRACED_FACTOR = 4
# One stack of each kind that matters here.
_DIFFERENT: list[Stack] = list(
    {(p.engine, p.fsdp, p.step, p.main_gradients): stack for stack, p in PROFILES.items()}.values()
)


@dataclass(frozen=True)
class _Sizes:
    linear: float
    layer: float
    adapters: float
    embedding: float = 0.0


def names() -> list[str]:
    """All names that a job file may use."""
    return sorted(table())


def parameters(workload: Workload) -> tuple[float, float]:
    """All parameters of the denoiser, and those that are trained."""
    of = _denoiser(workload)
    return of.parameters, of.parameters if workload.method == "full" else _adapters(of, workload)


def encoder_bytes(model: Diffusion) -> float:
    """Bytes of text encoders and autoencoder in 16 bits where this process loads them."""
    return 0.0 if model.encoders == "cached" else resolve(model).encoders


def sample_bytes(model: Diffusion) -> float:
    """Bytes of the pixels of one sample in fp32."""
    height, width, frames = size(model)
    return 3.0 * 4 * height * width * frames


def gpu_phases(workload: Workload, placement: Placement) -> Phases:
    """Bytes of one GPU by phase and part. An unknown stack is predicted as the one that needs most."""
    return with_overhead(tensor_phases(workload, placement), workload.ranks(placement))


def tensor_phases(workload: Workload, placement: Placement) -> Phases:
    """What `gpu_phases` adds the allocator and the framework to."""
    able = stacks_with(workload.sharding)
    stacks = [one for one in _DIFFERENT if one in able] if workload.stack == "unknown" else [workload.stack]
    return max((_phases(workload, placement, stack) for stack in stacks), key=peak)


def notes(workload: Workload) -> tuple[str, ...]:
    """What is assumed of a workload, for the reader of the result."""
    model = workload.model
    if not isinstance(model, Diffusion):
        return ()
    of = resolve(model)
    height, width, frames = size(model)
    said = []
    if (height, width, frames) == (of.height, of.width, of.frames):
        what = f"{frames} frames of {height} x {width}" if frames > 1 else f"images of {height} x {width}"
        said.append(f"{what}, what {of.name} was made for")
    if model.encoders == "resident":
        said.append(
            f"text encoders and autoencoder stay on the GPU in 16 bits ({of.encoders / 2**30:.1f} GiB): "
            "memory.model.encoders says unloaded if they leave it before the first step, cached if they never are there"
        )
    if workload.lokr:
        said.append("adapters of LoKr have whole matrices (full_matrix), computed beside the weights (bypass_mode)")
    if workload.method == "lora":
        bits = "8 bits" if quantized(workload) else "16 bits"
        said.append(f"the frozen denoiser is in {bits}, and adapters have no dropout, as in diffusers' scripts")
    return tuple(said)


def _model(workload: Workload) -> Diffusion:
    if not isinstance(workload.model, Diffusion):
        raise TypeError("the workload's model is no diffusion model")
    return workload.model


def _denoiser(workload: Workload) -> Denoiser:
    return resolve(_model(workload))


def _adapters(of: Denoiser, workload: Workload) -> float:
    """Parameters of all adapters."""
    if workload.lokr is None:
        return float(of.ranked[_targets(workload)] * workload.lora_rank)
    return _products(of, workload.lokr)


def _products(of: Denoiser, factors: Kronecker) -> float:
    """Parameters of Kronecker products, whose larger part is a whole matrix (LyCORIS: ``full_matrix``)."""
    total = 0
    for layers in of.layers:
        if factor := getattr(factors, layers.kind):
            small, large = zip(_factored(layers.inputs, factor), _factored(layers.outputs, factor), strict=True)
            total += layers.number * (small[0] * small[1] + large[0] * large[1])
    return float(total)


def _factored(dimension: int, factor: int) -> tuple[int, int]:
    """Two numbers whose product is ``dimension``: ``factor``, or its largest divisor below it (LyCORIS)."""
    if dimension % factor:
        factor = max(one for one in range(1, min(factor, math.isqrt(dimension)) + 1) if dimension % one == 0)
    return min(factor, dimension // factor), max(factor, dimension // factor)


def _targets(workload: Workload) -> str:
    """diffusers' scripts adapt the projections of attention unless they are told otherwise."""
    return workload.lora_targets or "attention"


def _phases(workload: Workload, placement: Placement, stack: Stack) -> Phases:
    model, of = _model(workload), _denoiser(workload)
    encoders = model.encoders
    state = _state(of, workload, placement, stack)
    activations, gradients, kept = _peak(of, workload, state)
    loaded = {"weights": state.weights + of.buffers, "encoders": encoder_bytes(model)}
    resident = {
        "weights": loaded["weights"],
        "optimizer": state.optimizer,
        "encoders": of.encoders if encoders == "resident" else 0.0,
    }
    buckets = {"communication": state.buckets}
    phases = {
        "load": loaded,
        "backward": resident
        | {
            "activations": activations,
            "gradients": gradients,
            "communication": state.gathered + state.buckets,
        },
        "step": resident | {"gradients": state.gradients, "temporaries": state.step} | buckets,
        "checkpoint": resident | {"communication": state.gathered},
    }
    if encoders != "cached":
        height, width, frames = size(model)
        # Frames are encoded a few at a time.
        pixels = float(height * width * min(frames, 2 * of.slow))
        there = resident | buckets | {"gradients": kept} if encoders == "resident" else loaded
        phases["encoding"] = there | {"activations": workload.micro_batch * pixels * ENCODING}
    return phases


def _peak(of: Denoiser, workload: Workload, state: State) -> tuple[float, float, float]:
    """Activations and gradients at the moment that needs most, and gradients that wait between micro-batches."""
    positions = of.positions(*size(_model(workload)))
    way, copied = _way(workload), 1.0
    factor = 2.0 if workload.precision == "fp32" else 1.0  # traced in 16 bits
    copies = 0.0 if workload.gradient_checkpointing or workload.method == "full" else state.cast_copies
    if workload.lokr:  # traced with adapters in 16 bits and one factor; what does not grow is made of their weights
        trained = _products(of, workload.lokr)
        traced = Kronecker(TRACED_FACTOR, workload.lokr.feed_forward and TRACED_FACTOR)
        copied = trained / _products(of, traced)
        copies += 2 * trained if workload.precision.endswith("mixed") else 0.0
    kept = state.gradients if workload.accumulation > 1 else 0.0
    activations, gradients = max(
        (
            (
                factor * moment.activations(workload.micro_batch, positions, copied),
                max(kept, moment.gradients * state.gradients),
            )
            for moment in of.moments[way, workload.gradient_checkpointing]
        ),
        key=sum,
    )
    return activations + copies, gradients, kept


def _way(workload: Workload) -> str:
    """How it is trained, as ``diffusion_models.csv`` names it."""
    if workload.method == "full":
        return "full-mixed" if workload.precision.endswith("mixed") else "full-bf16"
    if workload.lokr:
        return "lokr-feed-forward" if workload.lokr.feed_forward else "lokr-attention"
    return f"lora-{_targets(workload)}"


def _state(of: Denoiser, workload: Workload, placement: Placement, stack: Stack) -> State:
    profile = replace(profile_of(stack, workload.sharding), base_16_bit=True)
    if workload.lokr and workload.precision == "bf16":
        profile = replace(profile, adapter=2)
    sizes = _Sizes(of.parameters, of.parameters / BLOCKS, 0.0 if workload.method == "full" else _adapters(of, workload))
    return model_state(workload, placement, profile, sizes)
