"""Peak GPU memory of training a vision model, by phase and part, in bytes.

The tables hold what a traced step reserves at a few batches; here it is read at the batch and image size of the
workload, with the states of its optimizer, and turned into device bytes. An image of another size counts as that many
images of the default size: feature maps and tokens grow with the area. Attention that keeps its scores, which fused
attention does not, grows with the square of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sagefit.job.memory_model import Stack
from sagefit.memory.overhead import NCCL, peak
from sagefit.memory.stacks import PROFILES, StackProfile, profile_of, stacks_with
from sagefit.memory.states import State, model_state
from sagefit.memory.vision_models import BATCHES, MIB, Found, default_image_size, find, known, names, resizes, resolve
from sagefit.memory.workload import Phases, Placement, Vision, Workload

__all__ = [
    "CONSTANTS",
    "Constants",
    "beside",
    "default_image_size",
    "find",
    "gpu_phases",
    "known",
    "names",
    "notes",
    "phases_of",
    "resizes",
    "resolve",
    "tensor_phases",
]

# What a task has beyond a backbone whose detector or segmenter was not traced, as factors on activations and on
# parameters. Traced with torchvision 0.28:
# segmentation keeps 1.5 to 3.0 times the activations of its backbone at the same image size, because the last stages
# are not strided, and has 0.6 to 2.0 times the parameters. Detection: a feature pyramid and region proposals add 0.2 to
# ResNet-50, and Faster R-CNN and Mask R-CNN have 1.63 and 1.74 times the parameters; that torchvision freezes the
# first layers and all batch norms, which halves the activations, is left to be a margin.
TASKS = {"detection": (1.25, 1.75), "segmentation": (3.0, 2.0)}
_SIDES = "memory.model.height and width say other sides"
# Bytes of input for each value of an image: two prefetched fp32 batches and one of bytes, as timm's loader has.
INPUT = 2 * 4 + 1


@dataclass(frozen=True)
class Constants:
    """What tensors do not explain.

    ``context`` is the device memory, in bytes, of a process without tensors: CUDA context, kernels, libraries. It
    depends on the CUDA release (kernels are loaded lazily since 11.7) more than on the GPU, but published runs say
    only the GPU. ``other`` is that of a GPU without runs, and ``most`` the highest that anybody published, which a
    bound allows for. ``factor`` is device bytes for each byte that the replayed allocator reserves.
    """

    context: Mapping[str, float]
    other: float
    most: float
    factor: float


# Fitted with vision_fit.fit on published runs: 2,128 of 510 timm models on an A100 (GPUMemNet's sheet), 56 of five
# models on an L40S (milabench). ``other`` is their mean. What else was published of processes without tensors is in
# tests/accuracy/contexts.csv: 141 MiB on a T4 in 2026 to 1,687 MiB on an RTX 3090 in 2022, by CUDA's release.
CONSTANTS = Constants(context={"A100": 1731 * MIB, "L40S": 894 * MIB}, other=1312 * MIB, most=1731 * MIB, factor=1.02)

# One stack of each kind that matters here: of the rest of a profile nothing concerns images.
_DIFFERENT: list[Stack] = list(
    {(p.engine, p.fsdp, p.step, stack == "tensorflow"): stack for stack, p in PROFILES.items()}.values()
)


@dataclass(frozen=True)
class _Sizes:
    """Parameters as `model_state` counts them. The largest layer of a vision model is taken as a tenth of it."""

    linear: float
    layer: float
    embedding: float = 0.0
    adapters: float = 0.0


def gpu_phases(workload: Workload, placement: Placement, constants: Constants | None = None) -> Phases:
    """Bytes of one GPU by phase and part.

    An unknown stack is predicted as the one that needs most. Raises KeyError for a model that is not `known`.
    """
    constants = constants or CONSTANTS
    context = _context(placement, constants)
    context += NCCL if workload.ranks(placement) > 1 else 0.0
    return {
        phase: {**parts, "allocator": (constants.factor - 1) * sum(parts.values()), "framework": context}
        for phase, parts in tensor_phases(workload, placement).items()
    }


def beside(placement: Placement, constants: Constants | None = None) -> float:
    """Bytes that a process without tensors may hold beyond what the point has of it: its software is not known."""
    constants = constants or CONSTANTS
    return max(0.0, constants.most - _context(placement, constants))


def _context(placement: Placement, constants: Constants) -> float:
    return constants.context.get(gpu_model(placement), constants.other)


def gpu_model(placement: Placement) -> str:
    """The GPU without its memory: ``A100`` of ``A100-40GB``."""
    return placement.gpu.partition("-")[0]


def tensor_phases(workload: Workload, placement: Placement) -> Phases:
    """What `gpu_phases` adds its constants to."""
    if not isinstance(workload.model, Vision):
        raise TypeError("the workload's model is no vision model")
    found = resolve(workload.model)
    able = stacks_with(workload.sharding)
    stacks = [one for one in _DIFFERENT if one in able] if workload.stack == "unknown" else [workload.stack]
    return max((phases_of(found, workload, placement, stack) for stack in stacks), key=peak)


def notes(workload: Workload) -> tuple[str, ...]:
    """What is assumed of a vision workload, for the reader of the result."""
    if not isinstance(workload.model, Vision):
        return ()
    found = resolve(workload.model)
    said = []
    if not workload.model.image_size and resizes(found):
        said.append(f"images are taken as 800 x 1333, to which detectors resize photographs; {_SIDES}")
    elif not workload.model.image_size:
        said.append(f"images are {found.size} x {found.size}, the default of {found.model.name}")
    if found.task != "classification" and found.traced and _frozen(workload.model):
        said.append(
            f"{found.model.name} is trained as with pretrained weights: its first stages and batch norms are frozen; "
            "pretrained: false says that they are not"
        )
    if found.model.classes and not workload.model.classes:
        said.append(f"memory.model.classes is not given; {found.model.name} is taken to have {found.model.classes}")
    if not found.traced:
        maps, heads = TASKS[found.task]
        said.append(f"{found.task} has {maps:g} x the activations and {heads:g} x the parameters of {found.model.name}")
    if workload.model.classes and not found.model.classes:
        said.append(f"classes count for known segmenters only, and change nothing for {found.model.name}")
    if workload.gradient_checkpointing and found.model.checkpointed is None:
        said.append(f"{found.model.name} has no switch for gradient checkpointing, so it saves nothing here")
    if workload.method != "full":
        said.append("all parameters of a vision model are taken to be trained")
    return tuple(said)


def _frozen(model: Vision) -> bool:
    """Whether ``model`` is taken to have a frozen part, which it would not have without pretrained weights."""
    return resolve(model).model != resolve(replace(model, pretrained=False)).model


def phases_of(found: Found, workload: Workload, placement: Placement, stack: Stack) -> Phases:
    """Bytes of tensors by phase and part of a model that `resolve` found, under one stack."""
    model = found.model
    maps, heads = (1.0, 1.0) if found.traced else TASKS[found.task]
    area = (found.size / model.size) ** 2
    images = workload.micro_batch * area
    parameters = model.parameters * heads
    state = _state(workload, placement, parameters, profile_of(stack, workload.sharding))
    activations, reserved = _activations(found, workload, images, area)
    activations, reserved = maps * activations, maps * reserved
    # The replay held whole gradients, of the backbone alone; here they may be sharded, or those of more layers.
    dtype = 2 if workload.precision == "bf16" else 4
    gradients = state.gradients - dtype * maps * model.parameters
    temporaries = max(0.0, reserved - activations + gradients)
    if stack == "tensorflow":  # Keras: outputs of all layers, weights, gradients, slots
        temporaries = state.gradients

    base = {"weights": state.weights + model.buffers, "optimizer": state.optimizer}
    inputs = INPUT * 3.0 * found.size**2
    phases = {
        "load": {"weights": state.weights + model.buffers},
        "backward": base
        | {
            "activations": activations,
            "temporaries": temporaries,
            "gradients": state.gradients if workload.accumulation > 1 else 0.0,
            "input": inputs * workload.micro_batch,
            "communication": state.gathered + _buckets(workload, placement, state),
        },
        "step": base
        | {
            "gradients": state.gradients,
            "temporaries": state.step,
            "input": inputs * workload.micro_batch,
            "communication": _buckets(workload, placement, state),
        },
        "checkpoint": base | {"communication": state.gathered},
    }
    if workload.evaluation_batch is not None:
        phases["evaluation"] = base | {
            "activations": maps * model.evaluation * area * workload.evaluation_batch * dtype / 4,
            "input": inputs * workload.evaluation_batch,
            "communication": state.gathered,
        }
    return phases


def _state(workload: Workload, placement: Placement, parameters: float, profile: StackProfile) -> State:
    """The states of one rank; all parameters are trained."""
    sizes = _Sizes(linear=parameters, layer=parameters / 10)
    full = workload if workload.method == "full" else replace(workload, method="full")
    return model_state(full, placement, profile, sizes)


def _buckets(workload: Workload, placement: Placement, state: State) -> float:
    """DistributedDataParallel copies gradients into buckets (``gradient_as_bucket_view`` is off by default)."""
    ranks = workload.ranks(placement)
    return state.gradients if ranks > 1 and workload.sharding == "none" else state.buckets


def _activations(found: Found, workload: Workload, images: float, area: float) -> tuple[float, float]:
    """Bytes saved for backward, and bytes reserved for a step: never less than the first."""
    model = found.model
    mixed = workload.precision.endswith("mixed")
    # Scores of attention grow with the square of the area; a segmenter has a value for each class and pixel.
    beside = model.attention * max(0.0, area - 1) * images
    beside += model.beside(_classes(workload), mixed=mixed) * images
    saved = (model.half_saved if mixed else model.saved) * images + beside
    reserved = max(saved, between(model.half_reserved if mixed else model.reserved, images) + beside)
    if workload.gradient_checkpointing and model.checkpointed:
        # The model's own switch keeps the inputs of blocks. It was traced in fp32; of that, autocast shrinks what is no
        # gradient as it shrinks everything else, and adds 16-bit copies of the weights.
        gradients = 4.0 * model.parameters
        kept = max(0.0, between(model.checkpointed, images) - gradients)
        if mixed:
            kept = kept * model.half_saved / model.saved + 2 * model.parameters
        reserved = min(reserved, kept + gradients)
        saved = min(saved, max(0.0, reserved - gradients))
    half = 0.5 if workload.precision == "bf16" else 1.0
    return saved * half, reserved * half


def _classes(workload: Workload) -> int:
    return workload.model.classes if isinstance(workload.model, Vision) else 0


def between(points: Sequence[float], images: float) -> float:
    """Bytes at ``images``, on the line through the two nearest of `BATCHES`; below the first its value."""
    if images <= BATCHES[0]:
        return points[0]
    at = next((i for i, batch in enumerate(BATCHES) if images <= batch), len(BATCHES) - 1)
    slope = (points[at] - points[at - 1]) / (BATCHES[at] - BATCHES[at - 1])
    return points[at - 1] + slope * (images - BATCHES[at - 1])
