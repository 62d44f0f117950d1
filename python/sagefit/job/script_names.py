"""Names that single training frameworks have for what the planner reads, beside those of `sagefit.job.other_names`.

A name that is a common word counts only for models of a kind of which it cannot mean anything else. Sources: the
documentation of Ultralytics 8, axolotl, LLaMA-Factory, ms-swift 3, TRL, torchtune, diffusers' training scripts, kohya's
sd-scripts, Lightning 2, LitGPT and Unsloth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as made
from typing import Literal, get_args

from sagefit.job.memory_model import Knob
from sagefit.job.other_names import ATTENTIONS, OPTIMIZERS, PRECISIONS

Kind = Literal["language", "vision", "yolo", "diffusion"]
"""Kinds of models: transformers, models of images, those of them that Ultralytics trains, denoisers."""


@dataclass(frozen=True)
class Name:
    """What a hyperparameter means: the field of the memory block, for which kinds of models (none: for all).

    ``words`` are its values as those of the field; None stands for a value that says nothing. Without words it has the
    values of the field itself.
    """

    field: str
    kinds: tuple[Kind, ...] = ()
    words: Mapping[str, object] = made(default_factory=dict)


_TRAINED: tuple[Kind, ...] = ("language", "vision", "diffusion")
# Of several words for one value the first is the one that is advised.
_ON: dict[str, object] = {"true": "flash", "false": None}
_SWIFT: dict[str, object] = {"flash_attn": "flash", **ATTENTIONS}
_FACTORY: dict[str, object] = {"fa2": "flash", "fa3": "flash", "sdpa": "sdpa", "disabled": "eager", "auto": None, **_ON}
# Scripts that have a name for an optimizer other than `optim` train SGD with momentum.
_CLASSES = {
    **OPTIMIZERS,
    "sgd": "sgd-momentum",
    "adamw8bit": "adamw-8bit",
    "adam8bit": "adamw-8bit",
    "pagedadamw8bit": "paged-adamw-8bit",
    "pagedadamw": "adamw",
    "pagedadamw32bit": "adamw",
}
_METHODS = {"lora": "lora", "qlora": "qlora", "full": "full", "freeze": "full", "none": "full", "": "full"}
_LINEAR = {"all-linear": "all-linear", "all": "all-linear"}
_QUANTIZE = {"none": None, "": None, **dict.fromkeys(("bnb.nf4", "bnb.nf4-dq", "bnb.fp4", "bnb.fp4-dq"), "qlora")}
_BITS = {"4": "qlora", "none": None, "0": None}

NAMES: dict[str, Name] = {
    "sequence_len": Name("sequence_length", ("language",)),
    "cutoff_len": Name("sequence_length", ("language",)),
    "tokenizer.max_seq_len": Name("sequence_length", ("language",)),
    "max_source_length": Name("sequence_length", ("language",)),
    "batch_size_training": Name("micro_batch", ("language",)),
    "enable_activation_checkpointing": Name("gradient_checkpointing"),
    "grad_checkpointing": Name("gradient_checkpointing"),
    "use_gradient_checkpointing": Name("gradient_checkpointing", words={"true": True, "unsloth": True, "false": False}),
    "precision": Name("precision", _TRAINED, {"bf16-mixed": "bf16-mixed", **PRECISIONS}),
    "amp": Name("precision", ("vision",), {"true": "fp16-mixed", "false": "fp32"}),
    "optimizer": Name("optimizer", _TRAINED, _CLASSES),
    "opt": Name("optimizer", ("vision",), {**_CLASSES, "momentum": "sgd-momentum", "lamb": "adamw"}),
    "optimizer_type": Name("optimizer", ("diffusion",), {"adamw8bit": "adamw-8bit", **_CLASSES}),
    "attn_impl": Name("attention", ("language",), _SWIFT),
    "flash_attn": Name("attention", ("language",), _FACTORY),
    "flash_attention": Name("attention", ("language",), _ON),
    "use_flash_attention": Name("attention", ("language",), _ON),
    "use_flash_attention_2": Name("attention", ("language",), _ON),
    "rank": Name("lora_rank", ("diffusion",)),
    "network_dim": Name("lora_rank", ("diffusion",)),
    "workers": Name("workers", ("vision",)),
    "max_data_loader_n_workers": Name("workers", ("diffusion",)),
    # What follows is no knob: a remedy does not change it.
    "quantization_bit": Name("method", ("language",), {**_BITS, "8": "lora"}),
    "quant_bits": Name("method", ("language",), {**_BITS, "8": "lora"}),
    "use_qlora": Name("method", ("language",), {"true": "qlora", "false": None}),
    "use_4bit": Name("method", ("language",), {"true": "qlora", "false": None}),
    "quantize": Name("method", ("language",), _QUANTIZE),
    "network_module": Name("method", ("diffusion",), {"networks.lora": "lora", "networks.lora_flux": "lora"}),
    "adapter": Name("method", ("language",), _METHODS),
    "finetuning_type": Name("method", ("language",), _METHODS),
    "train_type": Name("method", ("language",), _METHODS),
    "tuner_type": Name("method", ("language",), _METHODS),
    "lora_target_linear": Name("lora_targets", ("language",), {"true": "all-linear", "false": None}),
    "lora_target": Name("lora_targets", ("language",), _LINEAR),
    "target_modules": Name("lora_targets", ("language", "diffusion"), _LINEAR),
    "lora_target_modules": Name("lora_targets", ("language",), _LINEAR),
}
"""By the name in lower case, with _ for -. The first name of a field is the preferred one."""

TOLD = tuple(name for name, known in NAMES.items() if known.field in ("method", "lora_targets"))
"""Those that are no number, so that a remedy never sets them."""

KNOBS_OF: dict[Knob, dict[str, Name]] = {
    knob: {name: known for name, known in NAMES.items() if known.field == knob and name not in TOLD}
    for knob in get_args(Knob)
}
"""Those that set one of the planner's numbers, by number."""

SIZES: dict[str, tuple[Kind, ...]] = {
    "imgsz": ("vision",),
    "img_size": ("vision",),
    "image_size": ("vision",),
    "resolution": ("diffusion",),
}
"""Names of the size of an image, in pixels: one side, or width and height of what a denoiser makes."""

DTYPES = {
    **dict.fromkeys(("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
    **dict.fromkeys(("fp16", "float16", "torch.float16", "half"), "fp16"),
    **dict.fromkeys(("fp32", "float32", "torch.float32"), "fp32"),
}
"""Values of ``torch_dtype`` and ``dtype``: in what a script loads a language model."""

SWIFT_CONFIGURATIONS: dict[str, dict[str, object]] = {
    "zero0": {"stage": 0},
    "zero1": {"stage": 1, "reduce_bucket_size": 2e8},
    "zero2": {"stage": 2, "reduce_bucket_size": 2e8},
    "zero3": {"stage": 3, "reduce_bucket_size": "auto"},
    "zero2_offload": {"stage": 2, "reduce_bucket_size": 2e8, "offload_optimizer": {"device": "cpu"}},
    "zero3_offload": {
        "stage": 3,
        "reduce_bucket_size": "auto",
        "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "cpu"},
    },
}
"""DeepSpeed configurations that ms-swift has by name."""

NAMES_OF_METHODS = (
    *("load_in_4bit", "load_in_8bit", "use_peft", "use_lora", "lora_r", "lora_rank", "rank", "network_dim"),
    *(name for name, known in NAMES.items() if known.field == "method"),
)
"""Hyperparameters that may say with which method a script trains."""

OTHER_FILES = re.compile(
    "accelerate|deepspeed|ds_config|fsdp_config|data|_file$|model|tokenizer|vocab|prompt|template|label|schema"
)
"""Names of files that are no configuration of the script: those of launchers, which are read apart, and of data."""

_AROUND = (
    *("train", "training", "trainer", "train_args", "training_args", "training_arguments", "trainer_args", "args"),
    *(
        "data",
        "datamodule",
        "dataloader",
        "model",
        "tokenizer",
        "lora",
        "peft",
        "peft_config",
        "hparams",
        "config",
        "cfg",
    ),
)
AROUND = frozenset(_AROUND)
"""Words before a dotted name that leave it what its last part says: ``train.micro_batch_size``."""

UNCOUNTED: dict[str, tuple[tuple[Kind, ...], str]] = {
    "use_ema": (("diffusion",), "an average of the weights takes 4 more bytes for each of them"),
    "train_text_encoder": (
        ("diffusion",),
        "a text encoder that is trained too has gradients and optimizer states of its own",
    ),
    "model_ema": (("vision",), "an average of the weights takes 4 more bytes for each of them"),
    **dict.fromkeys(
        ("modules_to_save", "lora_modules_to_save", "additional_target"),
        (("language",), "these layers are trained as a whole, with gradients and optimizer states of their own"),
    ),
    "use_dora": (("language", "diffusion"), "DoRA computes the norm of each adapted weight, and needs more than LoRA"),
    "auto_find_batch_size": (("language",), "the Trainer halves a batch that does not fit, and starts again"),
}
"""Settings that change memory in a way that is not predicted, with what it is."""

_ATTENTION = (
    *(
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "qkv_proj",
        "out_proj",
        "output_proj",
        "in_proj",
        "q_lin",
        "k_lin",
        "v_lin",
    ),
    *("query", "key", "value", "query_key_value", "dense", "c_attn", "w_pack", "wqkv", "attn", "q", "k", "v", "o"),
)
ATTENTION_LAYERS = frozenset(_ATTENTION)
"""Names of layers of attention that scripts give LoRA as targets."""

PARALLEL = tuple(
    f"{words}{ending}"
    for words in (
        *("tensor_model_parallel", "pipeline_model_parallel", "tensor_parallel", "pipeline_parallel"),
        *("context_parallel", "expert_model_parallel", "sequence_parallel"),
    )
    for ending in ("_size", "_degree")
)
"""Over how many GPUs a model is parted in ways that are not planned."""

_MODELS = (
    *("model_name_or_path", "pretrained_model_name_or_path", "base_model", "model_id", "model_name"),
    *("pretrained_model", "model"),
)


def models_in(hyperparameters: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Hyperparameters that usually name a model, with what they name. Paths and addresses are left out."""
    spelt = {name.lower().replace("-", "_"): name for name in hyperparameters}
    for name in (spelt[known] for known in _MODELS if known in spelt):
        value = hyperparameters[name]
        if isinstance(value, str) and value.strip() and not re.match(r"[./~$]|\w+://", value.strip()):
            yield name, value.strip()
