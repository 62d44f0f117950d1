"""Which hyperparameter of the script is which number of the planner.

Names are those of Hugging Face's ``TrainingArguments`` and of common scripts, in order of preference; upper case
and hyphens make no difference. ``memory.knobs`` of a job names others.
"""

from __future__ import annotations

from collections.abc import Mapping

from sagefit.job import Job
from sagefit.job.memory_model import Knob

DEFAULTS: dict[Knob, tuple[str, ...]] = {
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


def name_of(job: Job, knob: Knob, hyperparameters: Mapping[str, object] | None = None) -> str | None:
    """The hyperparameter that sets ``knob``, as the job spells it; None when the script has no such knob.

    A script has a knob when ``memory.knobs`` names it, or when the job (or ``hyperparameters``, an attempt's) sets a
    hyperparameter of a usual name.
    """
    if job.memory is not None and knob in job.memory.knobs:
        return job.memory.knobs[knob]
    return next(iter(names_in(knob, hyperparameters or job.hyperparameters)), None)


def names_in(knob: Knob, hyperparameters: Mapping[str, object]) -> list[str]:
    """Those of ``hyperparameters`` that are usual names of ``knob``, as they are spelt there, the preferred first."""
    spelt = {_plain(name): name for name in hyperparameters}
    return [spelt[name] for name in DEFAULTS[knob] if name in spelt]


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
