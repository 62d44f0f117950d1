"""The ``memory`` block of a job file: what the planner has to know of the model and of the training script.

Limits are far beyond any machine; what exceeds them is a slip of the keyboard.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from sagefit.job.forms import MAPPING, TEXT, either, of_family
from sagefit.job.values import Fields, Number, Seconds

Layers = Annotated[int, Field(ge=1, le=10_000)]
Width = Annotated[int, Field(ge=1, le=10_000_000)]
Batch = Annotated[int, Field(ge=1, le=10_000_000)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Gib = Annotated[Number, Field(ge=0, le=1e9)]

Method = Literal["full", "lora", "qlora"]
Precision = Literal["fp32", "fp16-mixed", "bf16-mixed", "bf16"]
Optimizer = Literal[
    "adamw", "adamw-8bit", "adafactor", "sgd", "sgd-momentum", "lion", "paged-adamw-8bit", "adamw-kahan"
]
Step = Literal["foreach", "fused", "bitsandbytes"]
Attention = Literal["eager", "sdpa", "flash"]
Sharding = Literal["none", "zero1", "zero2", "zero3", "fsdp", "fsdp-shard-grad-op", "fsdp-hybrid-shard"]
LoraTargets = Literal["attention", "all-linear"]
Offload = Literal["none", "optimizer", "parameters"]
Loss = Literal["default", "standard", "chunked", "fused"]
Objective = Literal["supervised", "dpo", "orpo", "cpo", "kto", "reward", "grpo", "gkd", "contrastive", "triplet"]
Sampler = Literal["transformers", "vllm", "vllm-sleeping", "elsewhere"]
Stack = Literal[
    "hf-trainer",
    "hf-liger",
    "ms-swift",
    "torchtune",
    "litgpt",
    "torchtitan",
    "deepspeed",
    "megatron",
    "plain-torch",
    "tensorflow",
    "unknown",
]
WITHOUT_FSDP: tuple[Stack, ...] = ("deepspeed", "megatron", "tensorflow")
"""Stacks that do not train with PyTorch's FSDP."""
WITHOUT_QLORA: tuple[Stack, ...] = ("torchtitan",)
"""Stacks without 4-bit weights under adapters (torchtitan/components/lora.py)."""
DECODERS_ONLY: tuple[Stack, ...] = ("torchtune", "litgpt", "torchtitan")
"""Stacks that train language models with a decoder only (their lists of models; Megatron has BERT and T5, too)."""
Checkpointing = Literal[True, False, "full", "selective"]

Knob = Literal[
    "micro_batch",
    "accumulation",
    "gradient_checkpointing",
    "sequence_length",
    "evaluation_batch",
    "precision",
    "optimizer",
    "attention",
    "lora_rank",
    "workers",
    "prefetch",
    "in_memory",
]
"""What of the planner's input a hyperparameter may set; ``in_memory`` is whether the script holds its dataset."""


class TransformerModel(Fields):
    """A transformer by its numbers (Hugging Face ``config.json`` terms)."""

    family: Literal["transformer"]
    params: Annotated[Number, Field(gt=0, le=1e14)]
    layers: Layers
    hidden_size: Width
    heads: Count
    vocab_size: Annotated[int, Field(ge=1, le=100_000_000)]
    kv_heads: Count | None = None
    ffn_size: Width | None = None
    head_dim: Width | None = None
    architecture: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    encoder_layers: Layers | None = None
    mlp: Literal["gated", "plain"] | None = None
    norm: Literal["rms", "layer"] | None = None
    dropout: bool | None = None
    tie_embeddings: bool | None = None
    experts: Count = 1
    experts_per_token: Count | None = None
    shared_ffn_size: Width | None = None


class VisionModel(Fields):
    """A vision model by name, and images of ``height`` x ``width`` pixels; ``convnet`` is the same family.

    ``image_size`` stands for both where they are equal.
    ``pretrained`` says whether the backbone of a detector comes with weights, of which a part stays frozen. A segmenter
    has a value for each of its ``classes`` and each pixel.
    """

    family: Literal["vision", "convnet"]
    name: str
    image_size: Annotated[int, Field(ge=1, le=100_000)] | None = None
    height: Annotated[int, Field(ge=1, le=100_000)] | None = None
    width: Annotated[int, Field(ge=1, le=100_000)] | None = None
    task: Literal["classification", "detection", "segmentation"] = "classification"
    pretrained: bool = True
    classes: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class DiffusionModel(Fields):
    """The denoiser of a diffusion model by name: an image or a video of ``height`` x ``width`` pixels.

    ``image_size`` stands for both where they are equal. ``encoders`` says whether text encoders and autoencoder stay in
    GPU memory, leave it before the first step, or are never there beside the denoiser.
    """

    family: Literal["diffusion"]
    name: str
    image_size: Annotated[int, Field(ge=64, le=100_000)] | None = None
    height: Annotated[int, Field(ge=64, le=100_000)] | None = None
    width: Annotated[int, Field(ge=64, le=100_000)] | None = None
    frames: Annotated[int, Field(ge=1, le=100_000)] | None = None
    encoders: Literal["resident", "unloaded", "cached"] = "resident"


class TabularModel(Fields):
    """Gradient boosting or scikit-learn on one table; ``copies`` of it in memory, where somebody knows."""

    family: Literal["tabular"]
    library: Literal["xgboost", "scikit-learn"]
    dtype_bytes: Literal[1, 2, 4, 8] = 8
    rows: Annotated[int, Field(ge=1, le=10**15)] | None = None
    columns: Annotated[int, Field(ge=1, le=10**9)] | None = None
    copies: Annotated[Number, Field(ge=1, le=1000)] | None = None

    @property
    def size_gib(self) -> float | None:
        """The size by rows and columns; None where they are not given."""
        return self.rows * self.columns * self.dtype_bytes / 1024**3 if self.rows and self.columns else None


class MeasuredModel(Fields):
    """Peaks somebody measured, in GiB: per GPU and per host."""

    family: Literal["measured"]
    gpu_gib: Gib | None = None
    host_gib: Annotated[Number, Field(gt=0, le=1e9)]


FAMILIES = ("transformer", "vision", "convnet", "diffusion", "tabular", "measured")

Model = Annotated[
    Annotated[TransformerModel, Tag("<transformer>")]
    | Annotated[VisionModel, Tag("<vision>")]
    | Annotated[VisionModel, Tag("<convnet>")]
    | Annotated[DiffusionModel, Tag("<diffusion>")]
    | Annotated[TabularModel, Tag("<tabular>")]
    | Annotated[MeasuredModel, Tag("<measured>")],
    of_family(),
]


class Loader(Fields):
    """The data loader: worker processes of each rank, batches fetched ahead by each, bytes of one sample."""

    workers: Annotated[int, Field(ge=0, le=10_000)] | None = None
    prefetch: Annotated[int, Field(ge=0, le=10_000)] | None = None
    sample_bytes: Annotated[int, Field(ge=1, le=10**15)] | None = None


class Dataset(Fields):
    """The dataset: its size in GiB and whether the script holds all of it in memory."""

    size_gib: Gib
    in_memory: bool = False


class Trace(Fields):
    """A function of the training code that builds the model and one batch, for ``sagefit trace``."""

    function: Annotated[str, Field(pattern=r"^[\w./-]+\.py:[A-Za-z_]\w*$")]
    python: Annotated[str, Field(min_length=1)] | None = None
    timeout: Annotated[Seconds, Field(ge=1, le=86400)] = 600


class LoKr(Fields):
    """Adapters that are Kronecker products (LyCORIS's LoKr): the ``factor`` of each kind of layer that has them."""

    attention: Annotated[int, Field(ge=1, le=1024)]
    feed_forward: Annotated[int, Field(ge=1, le=1024)] | None = None


class Memory(Fields):
    """What the memory planner has to know. None stands for the hyperparameter, or for the documented default."""

    model: (
        Annotated[
            Annotated[str, TEXT] | Annotated[Model, MAPPING],
            either("a name, the path of a config.json, or a mapping with family and numbers"),
        ]
        | None
    ) = None
    method: Method = "full"
    lora_rank: Count | None = None
    lora_targets: LoraTargets | None = None
    lokr: LoKr | None = None
    base_dtype: Literal["default", "fp32", "16-bit", "8-bit"] = "default"
    head: Literal["lm", "classification"] | None = None
    objective: Objective = "supervised"
    reference_model: bool | None = None
    teacher_model: Annotated[str, Field(min_length=1)] | None = None
    sampler: Sampler | None = None
    sampler_share: Annotated[Number, Field(gt=0, le=0.95)] | None = None
    precision: Precision | None = None
    optimizer: Optimizer | None = None
    micro_batch: Batch | None = None
    accumulation: Batch | None = None
    evaluation_batch: Batch | None = None
    sequence_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    image_tokens: Annotated[int, Field(ge=0, le=100_000_000)] | None = None
    vision_tower: Literal["frozen", "trained"] | None = None
    gradient_checkpointing: Checkpointing | None = None
    attention: Attention | None = None
    loss: Loss = "default"
    sharding: Sharding = "none"
    cpu_offload: Offload = "none"
    world_size: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    stack: Stack = "unknown"
    loader: Loader | None = None
    dataset: Dataset | None = None
    head_room: Annotated[Number, Field(ge=0, le=0.9)] = 0.10
    accept_risky: bool = False
    knobs: dict[Knob, str] = {}
    trace: Trace | None = None
