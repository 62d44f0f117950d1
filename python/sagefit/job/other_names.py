"""The names that other tools use for fields and values of a job file, to tell their users the name in Sagefit.

``other_names.yaml`` lists them by place. This module lists the names that the planner reads as hyperparameters, and
their values. A name that differs only in case and signs between words needs no list.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sagefit.job.key import Key, pattern_of
from sagefit.job.memory_model import Attention, Knob, Optimizer, Precision, Step
from sagefit.nearest import plain

PRECISIONS: dict[str, Precision] = {
    **dict.fromkeys(("no", "32", "32-true", "fp32", "float32"), "fp32"),
    **dict.fromkeys(("16", "16-mixed", "fp16", "float16", "fp16-mixed"), "fp16-mixed"),
    **dict.fromkeys(("bf16", "bf16-mixed"), "bf16-mixed"),
    **dict.fromkeys(("bf16-true", "bfloat16"), "bf16"),
}
"""As values of hyperparameters: names of ``TrainingArguments``, Accelerate and Lightning."""
OPTIMIZERS: dict[str, Optimizer] = {
    **dict.fromkeys(("adamw", "adamw_hf", "adamw_torch", "adamw_torch_fused", "adamw_apex_fused", "adam"), "adamw"),
    **dict.fromkeys(("adamw_8bit", "adamw_bnb_8bit", "adamw_torch_8bit", "adamw-8bit"), "adamw-8bit"),
    **dict.fromkeys(("paged_adamw_8bit", "paged-adamw-8bit"), "paged-adamw-8bit"),
    **dict.fromkeys(("paged_adamw", "paged_adamw_32bit"), "adamw"),
    **dict.fromkeys(("adamw_bf16", "optimi-adamw", "adamw-kahan"), "adamw-kahan"),
    "adafactor": "adafactor",
    "sgd": "sgd",
    "sgd-momentum": "sgd-momentum",
    **dict.fromkeys(("lion", "lion_32bit", "paged_lion_32bit"), "lion"),
}
STEPS: dict[str, Step] = {
    **dict.fromkeys(("adamw_torch_fused", "adamw_apex_fused"), "fused"),
    **dict.fromkeys(("paged_adamw", "paged_adamw_32bit", "lion_32bit", "paged_lion_32bit"), "bitsandbytes"),
}
"""Whose kernels update the weights, for names of optimizers whose kernels are not torch's ``foreach``."""
ATTENTIONS: dict[str, Attention] = {
    "eager": "eager",
    **dict.fromkeys(("sdpa", "flex_attention"), "sdpa"),
    **dict.fromkeys(("flash", "flash_attention_2", "flash_attention_3"), "flash"),
}
KNOBS: dict[Knob, tuple[str, ...]] = {
    "micro_batch": (
        "per_device_train_batch_size",
        "per_gpu_train_batch_size",
        "train_micro_batch_size_per_gpu",
        "micro_batch_size",
        "train_batch_size",
        "batch_size",
    ),
    "accumulation": ("gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum_steps"),
    "evaluation_batch": ("per_device_eval_batch_size", "per_gpu_eval_batch_size", "eval_batch_size", "test_batch_size"),
    "sequence_length": (
        "max_seq_length",
        "max_seq_len",
        "max_length",
        "model_max_length",
        "sequence_length",
        "seq_length",
        "block_size",
    ),
    "gradient_checkpointing": ("gradient_checkpointing", "activation_checkpointing"),
    "precision": ("bf16", "fp16", "mixed_precision"),
    "optimizer": ("optim",),
    "attention": ("attn_implementation",),
    "lora_rank": ("lora_r", "lora_rank"),
    "workers": ("dataloader_num_workers", "num_workers"),
    "prefetch": ("dataloader_prefetch_factor", "prefetch_factor"),
    "in_memory": (),
}
"""The hyperparameters that set the planner's numbers, in order of preference."""


_FILE = Path(__file__).with_suffix(".yaml")
_PLANNER: dict[str, dict[str, Any]] = {"memory.optimizer": OPTIMIZERS, "memory.attention": ATTENTIONS}


def place_of(place: Key, name: str) -> str | None:
    """The right place for ``name``, an unknown key at ``place``: a path from there or from the top."""
    home = _tables()["places"].get(pattern_of(place), {}).get(plain(name))
    return home.removeprefix(f"{place[-1]}.") if home and place else home


def value_of(field: Key, given: str, known: Iterable[str]) -> str | None:
    """The name of ``given`` in Sagefit; None when Sagefit has no equal value."""
    same = [name for name in known if plain(name) == plain(given)]
    if same:
        return same[0]
    values, pattern = _tables()["values"], pattern_of(field)
    of_key = values.get(pattern.rpartition(".")[0], {}) if ".next." in pattern else {}
    return values.get(pattern, of_key).get(plain(given))


@cache
def _tables() -> dict[str, dict[str, dict[str, str]]]:
    """``places`` and ``values``: field pattern -> other tool's name (without signs) -> name in Sagefit."""
    written = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    tables = {
        kind: {
            field: {plain(name): here for here, names in homes.items() for name in str(names).split()}
            for field, homes in by_field.items()
        }
        for kind, by_field in written.items()
    }
    for field, table in _PLANNER.items():
        tables["values"][field] |= {plain(name): here for name, here in table.items()}
    homes = {"workers": "loader.workers", "prefetch": "loader.prefetch"}
    for knob, names in KNOBS.items():
        tables["places"]["memory"] |= {
            plain(name): homes.get(knob, knob) for name in names if plain(name) != plain(knob)
        }
    return tables
