"""What the planner predicts for: a model, how it is trained, and where.

Bytes are bytes, GiB are 1024**3. A batch is what one GPU (or one host, without GPUs) works on at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from sagefit.catalog.instance_table import Instance
from sagefit.job.memory_model import (
    Attention,
    LoraTargets,
    Loss,
    Method,
    Objective,
    Offload,
    Optimizer,
    Precision,
    Sampler,
    Sharding,
    Stack,
    Step,
)
from sagefit.memory.deepspeed import DEFAULTS, Zero

GIB = 1024**3

Phases = dict[str, dict[str, float]]
"""Bytes by phase and part: what each family of models computes."""


@dataclass(frozen=True)
class VisionTower:
    """The part of a vision-language model that sees: a transformer over patches of images.

    ``patches`` of them become one token of the language model. ``params`` are those of the tower and of what leads to
    the language model.
    """

    layers: int
    hidden: int
    heads: int
    ffn: int
    params: int
    gated: bool = False
    norm: Literal["rms", "layer"] = "layer"
    patches: int = 1


@dataclass(frozen=True)
class Transformer:
    """A transformer by its numbers, in the terms of a Hugging Face ``config.json``.

    ``params`` counts all parameters, those of every expert included. ``layers`` are those of the decoder, or of
    the encoder of an encoder; an encoder-decoder has ``encoder_layers`` besides. ``ffn`` is the width of one expert;
    ``dense_layers`` of a mixture have one MLP of ``dense_ffn`` instead of experts. ``position_bias`` says that the
    model's own code computes attention scores in full (T5's relative positions, ALiBi). A vision-language model has a
    ``tower``, and all other numbers are those of its language model, but for ``params``.
    """

    params: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    name: str = ""
    architecture: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    encoder_layers: int = 0
    gated: bool = True
    norm: Literal["rms", "layer"] = "rms"
    dropout: bool = False
    tied: bool = False
    head: Literal["lm", "classification"] = "lm"
    experts: int = 1
    experts_per_token: int = 1
    shared_ffn: int = 0
    position_bias: bool = False
    dense_layers: int = 0
    dense_ffn: int = 0
    tower: VisionTower | None = None


@dataclass(frozen=True)
class Vision:
    """A vision model by its name in the tables of `vision_models`; images are square, in pixels.

    ``pretrained`` says that the backbone of a detector comes with weights, of which a part stays frozen. ``classes``
    are those of a segmenter; 0 stands for as many as it was traced with.
    """

    name: str
    image_size: int
    task: Literal["classification", "detection", "segmentation"] = "classification"
    pretrained: bool = True
    classes: int = 0


@dataclass(frozen=True)
class Diffusion:
    """The denoiser of a diffusion model by its name in ``denoisers.csv``.

    ``height`` and ``width`` are pixels of what it makes, ``frames`` those of a video; 0 stands for what it was made
    for. ``encoders`` are text encoders and autoencoder: ``resident`` in GPU memory, ``unloaded`` before the first step,
    or never there beside the denoiser (``cached``).
    """

    name: str
    height: int = 0
    width: int = 0
    frames: int = 0
    encoders: Literal["resident", "unloaded", "cached"] = "resident"


@dataclass(frozen=True)
class Tabular:
    """A model of tabular data, fitted on one host."""

    library: Literal["xgboost", "scikit-learn"]
    dtype_bytes: int = 8
    copies: float | None = None


@dataclass(frozen=True)
class Measured:
    """Peaks somebody measured: of one GPU and of one host, in GiB."""

    host_gib: float
    gpu_gib: float | None = None


@dataclass(frozen=True)
class TracedPoint:
    """Peaks of a traced model at one batch, in bytes by phase and part: of a ``single`` batch, of one more that is
    ``accumulating`` gradients, and of ``evaluation``. Without optimizer state, which is the same at every batch.
    """

    batch: int
    checkpointing: bool
    peaks: dict[str, Phases]


@dataclass(frozen=True)
class Traced:
    """What an exact trace of the user's own model counted: tensors on one GPU, in bytes.

    ``family`` says which calibration to device bytes applies, ``key`` which inputs were traced; ``parameters`` and
    ``trained`` are counts. ``optimizers`` holds ``state`` and ``temporaries`` of the step for each optimizer.
    """

    key: str
    family: Literal["transformer", "vision"]
    parameters: int
    trained: int
    weights: int
    buffers: int
    gradients: int
    optimizers: dict[str, dict[str, int]] = field(compare=False)
    points: tuple[TracedPoint, ...] = field(compare=False)


Model = Transformer | Vision | Diffusion | Tabular | Measured | Traced


@dataclass(frozen=True)
class Placement:
    """Where a workload runs: hosts, GPUs of each, the GPU's model as the instance catalog names it, and its memory.

    ``gpu_gib`` counts only for software that takes a share of it; 0 where it is not known.
    """

    hosts: int = 1
    gpus_per_host: int = 0
    gpu: str = ""
    gpu_gib: float = 0.0

    @classmethod
    def on(cls, instance: Instance, hosts: int = 1) -> Placement:
        """``hosts`` instances of one type."""
        if not instance.gpu_count:
            return cls(hosts)
        gib = instance.usable_gpu_gib or instance.accelerator_memory_gib or 0.0
        return cls(hosts, instance.gpu_count, instance.accelerator, gib)

    @property
    def gpus(self) -> int:
        """GPUs of all hosts."""
        return self.hosts * self.gpus_per_host


class Kronecker(NamedTuple):
    """Factors of adapters that are Kronecker products, of attention and of feed-forward layers (None: not adapted)."""

    attention: int
    feed_forward: int | None = None


@dataclass(frozen=True)
class Workload:
    """One attempt of a job as the planner sees it, with every default filled in.

    ``model`` is None when the job file says nothing of its memory. ``world_size`` None means all GPUs of the
    placement, ``lora_targets`` None what the stack adapts by habit, ``encoder_length`` None that an encoder beside a
    decoder sees ``sequence_length`` tokens, ``lokr`` that adapters have a rank. ``image_tokens`` of the sequence come
    from images, through the vision tower.
    ``checkpointing`` says which kind gradient checkpointing is. ``frees_at_once`` says that malloc is told to give
    memory back to the kernel as soon as it is freed, ``expandable_segments`` that torch's allocator is told to grow
    segments, ``hugging_face`` that the process loads Hugging Face's libraries, whatever the stack. ``saves_shards``
    says that each rank of FSDP saves its own shard, so that none gathers the whole, ``wrapped`` that
    FSDP shards layer by layer and not the model as one, ``zero`` what a DeepSpeed
    configuration says besides its stage. ``torch`` is the release that runs
    or an older one, where it is known, ``step`` whose kernels update weights. ``reference`` says that a frozen
    copy of the model is on each GPU, ``teacher`` is that of ``objective`` gkd (None: the model's own numbers),
    ``sampler_share`` what vLLM takes of a GPU's memory. ``notes`` are assumptions made while reading, for the reader
    of the result. ``peaks`` were measured in earlier runs of the job.
    """

    model: Model | None
    method: Method = "full"
    lora_rank: int = 16
    lora_targets: LoraTargets | None = None
    lokr: Kronecker | None = None
    precision: Precision = "fp32"
    optimizer: Optimizer = "adamw"
    micro_batch: int = 1
    accumulation: int = 1
    sequence_length: int = 512
    encoder_length: int | None = None
    image_tokens: int = 0
    vision_tower: Literal["frozen", "trained"] = "trained"
    gradient_checkpointing: bool = False
    checkpointing: Literal["default", "full", "selective"] = "default"
    attention: Attention = "sdpa"
    sharding: Sharding = "none"
    cpu_offload: Offload = "none"
    world_size: int | None = None
    stack: Stack = "unknown"
    loss: Loss = "default"
    base_dtype: Literal["default", "fp32", "16-bit", "8-bit"] = "default"
    objective: Objective = "supervised"
    reference: bool = False
    teacher: Transformer | None = None
    sampler: Sampler = "elsewhere"
    sampler_share: float = 0.0
    workers: int = 0
    prefetch: int = 2
    sample_bytes: int | None = None
    dataset_gib: float = 0.0
    dataset_in_memory: bool = False
    evaluation_batch: int | None = None
    frees_at_once: bool = False
    expandable_segments: bool = False
    hugging_face: bool = False
    saves_shards: bool = False
    wrapped: bool = True
    zero: Zero = DEFAULTS
    torch: tuple[int, int] | None = None
    step: Step = "foreach"
    notes: tuple[str, ...] = ()
    peaks: tuple[Peak, ...] = ()

    def __hash__(self) -> int:
        """That of all fields, made once: what was worked out for a workload is looked up again and again."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(vars(self).values()))  # which are the fields, in their order

    def ranks(self, placement: Placement) -> int:
        """Processes that train together, one for each GPU that is used, or for each host where none has a GPU."""
        return max(1, self.world_size or placement.gpus or placement.hosts)

    def shards(self, placement: Placement) -> int:
        """Ranks that share one copy of what is sharded: all of them, or those of a host with hybrid sharding."""
        ranks = self.ranks(placement)
        if self.sharding != "fsdp-hybrid-shard":
            return ranks
        return min(ranks, max(1, placement.gpus_per_host if placement.gpus else 1))

    @property
    def stage(self) -> int:
        """What is sharded, as a stage of ZeRO: 1 optimizer state, 2 also gradients, 3 also weights; 0 nothing."""
        return {"none": 0, "zero1": 1, "zero2": 2}.get(self.sharding, 3)


@dataclass(frozen=True)
class Peak:
    """What one attempt of an earlier run used at its peak, of one GPU and of one host, in GiB; None where not known.

    ``workload`` and ``placement`` are what ran there. An attempt that ``died_of`` a memory needed more of it.
    """

    training_job: str
    workload: Workload
    placement: Placement
    gpu_gib: float | None
    host_gib: float | None
    died_of: Literal["", "gpu", "host"] = ""


@dataclass(frozen=True)
class Estimate:
    """Predicted peak memory of one GPU or one host, in GiB.

    ``parts`` sum to ``point`` and are those of ``phase``, the phase that binds; ``phases`` holds the sum of each.
    ``upper`` is what a measurement exceeds in about one case of twenty. ``spare`` of the point is given back by the
    allocator before a run dies: with less than ``point`` a run is slower, with less than ``least`` it dies. ``beside``
    is what of ``upper`` does not grow with the point: what a process may hold without any tensor.
    """

    point: float
    upper: float
    parts: dict[str, float]
    phase: str
    phases: dict[str, float] = field(default_factory=dict)
    spare: float = 0.0
    beside: float = 0.0

    @property
    def least(self) -> float:
        """What a run needs to live."""
        return self.point - self.spare


@dataclass(frozen=True)
class Prediction:
    """Both estimates of a workload on a placement; ``gpu`` is None without GPUs or without a model to judge."""

    host: Estimate
    gpu: Estimate | None
    assumptions: tuple[str, ...] = ()
    source: Literal["formula", "trace", "measured"] = "formula"
