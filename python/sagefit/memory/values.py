"""Hyperparameters as the planner's values. SageMaker passes text, so ``"16"`` is a number and ``"true"`` a boolean.

Names of optimizers, precisions and attention are those of Hugging Face's ``TrainingArguments`` and
``from_pretrained``, of Accelerate and of Lightning.
"""

from __future__ import annotations

from sagefit.job.memory_model import Checkpointing
from sagefit.memory.workload import Attention, Optimizer, Precision

PRECISIONS: dict[str, Precision] = {
    **dict.fromkeys(("no", "32", "32-true", "fp32", "float32"), "fp32"),
    **dict.fromkeys(("16", "16-mixed", "fp16", "float16", "fp16-mixed"), "fp16-mixed"),
    **dict.fromkeys(("bf16", "bf16-mixed"), "bf16-mixed"),
    **dict.fromkeys(("bf16-true", "bfloat16"), "bf16"),
}
OPTIMIZERS: dict[str, Optimizer] = {
    **dict.fromkeys(("adamw", "adamw_hf", "adamw_torch", "adamw_torch_fused", "adamw_apex_fused", "adam"), "adamw"),
    **dict.fromkeys(("adamw_8bit", "adamw_bnb_8bit", "adamw_torch_8bit", "adamw-8bit"), "adamw-8bit"),
    **dict.fromkeys(("paged_adamw_8bit", "paged-adamw-8bit"), "paged-adamw-8bit"),
    **dict.fromkeys(("paged_adamw", "paged_adamw_32bit"), "adamw"),
    "adafactor": "adafactor",
    "sgd": "sgd",
    "sgd-momentum": "sgd-momentum",
    **dict.fromkeys(("lion", "lion_32bit", "paged_lion_32bit"), "lion"),
}
ATTENTIONS: dict[str, Attention] = {
    "eager": "eager",
    **dict.fromkeys(("sdpa", "flex_attention"), "sdpa"),
    **dict.fromkeys(("flash", "flash_attention_2", "flash_attention_3"), "flash"),
}
_KINDS: dict[str, Checkpointing] = {"full": "full", "selective": "selective"}
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0", "none", ""), False),
}


def whole(raw: object) -> int | None:
    """``raw`` as a whole number, None if it is none."""
    if isinstance(raw, bool):
        return None
    try:
        value = float(raw) if isinstance(raw, (int, float, str)) else float("nan")
    except (ValueError, OverflowError):
        return None
    return int(value) if value.is_integer() else None


def flag(raw: object) -> bool | None:
    """``raw`` as a boolean, None if it is none."""
    return _FLAGS.get(text(raw))


def checkpointing(raw: object) -> Checkpointing | None:
    """``raw`` as a boolean or a kind of activation checkpointing, None if it is neither."""
    return _KINDS.get(text(raw), flag(raw))


def same(one: object, other: object) -> bool:
    """Whether two hyperparameters say the same: ``16`` and ``"16"``, ``true`` and ``"True"``."""
    return _plain(one) == _plain(other)


def _plain(raw: object) -> object:
    number, boolean = whole(raw), flag(raw)
    return number if number is not None else text(raw) if boolean is None else boolean


def text(raw: object) -> str:
    """``raw`` as SageMaker passes it, in lower case."""
    return str(raw).strip().lower()
