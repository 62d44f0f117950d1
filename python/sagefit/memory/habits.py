"""What training frameworks do where nobody tells them otherwise.

Sources: transformers 4 and 5, ``training_args.py`` (``per_device_train_batch_size`` and ``per_device_eval_batch_size``
are 8, and ``do_eval`` is true where ``eval_strategy`` is not ``no``), which the configurations of TRL's trainers leave
as they are; axolotl's ``normalize_config`` (the batch of an evaluation is ``micro_batch_size``; ``torch_dtype`` follows
``bf16`` and ``fp16``); LLaMA-Factory's ``hparams/parser.py`` and ``model/patcher.py`` (``compute_dtype`` follows
``bf16`` and ``fp16``, and is the ``torch_dtype`` in which it loads the model); Ultralytics' and YOLOv5's defaults (a
batch of 16, mixed precision, gradients accumulated up to a nominal batch of 64, 8 loader workers).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sagefit.job.key import Key, dotted
from sagefit.job.memory_model import Precision
from sagefit.job.script_names import Kind
from sagefit.memory.said import Said
from sagefit.memory.values import flag, text

Find = Callable[[str], tuple[Key, object] | None]
"""A hyperparameter by its plain name: its place and value."""

TRAINERS_BATCH = 8
"""Samples on each GPU, in training and in evaluation."""
NOMINAL_BATCH = 64
"""Samples that Ultralytics accumulates before a step."""
_ULTRALYTICS_BATCH = 16
_ULTRALYTICS_WORKERS = 8
_TRAINING_ARGUMENTS = ("hf-trainer", "hf-liger")
_EVALUATES = ("eval_strategy", "evaluation_strategy", "do_eval")
_STRATEGIES = ("steps", "epoch")
_ADAPTERS = ("lora", "dora", "rslora")


def default_batch(stack: str, kinds: Collection[Kind]) -> tuple[int, str] | None:
    """The batch on one GPU of a script that is told none, and whose default it is; None where none is known."""
    if stack in _TRAINING_ARGUMENTS:
        return TRAINERS_BATCH, "the Trainer's default"
    return (_ULTRALYTICS_BATCH, "Ultralytics' default") if "yolo" in kinds else None


def default_steps(batch: int, kinds: Collection[Kind]) -> int:
    """The batches that a script accumulates for a step where it is told neither."""
    return max(1, round(NOMINAL_BATCH / batch)) if "yolo" in kinds else 1


def default_workers(kinds: Collection[Kind]) -> tuple[int, str]:
    """The loader workers of each rank of a script that is told none, and whose default that is."""
    return (_ULTRALYTICS_WORKERS, "Ultralytics' default") if "yolo" in kinds else (0, "")


def default_precision(kinds: Collection[Kind]) -> tuple[Precision, str]:
    """The precision of a script that is told none, and why."""
    return ("fp16-mixed", ", Ultralytics' default") if "yolo" in kinds else ("fp32", "")


def default_evaluation(find: Find, stack: str, batch: int, notes: list[str]) -> int | None:
    """The batch of an evaluation that is asked for without one, which ``notes`` says; None where none is asked for."""
    if stack not in _TRAINING_ARGUMENTS:
        return None
    found = next((at for at in map(find, _EVALUATES) if at and (text(at[1]) in _STRATEGIES or flag(at[1]))), None)
    if found is None:
        return None
    of_axolotl = find("base_model") is not None
    taken = batch if of_axolotl else TRAINERS_BATCH
    why = "axolotl takes that of training" if of_axolotl else "the Trainer's default"
    notes.append(f"{dotted(found[0])} is {text(found[1])}, without a batch for it: evaluation_batch is {taken}, {why}")
    return taken


def loads_in_16_bits(find: Find) -> Said | None:
    """That frozen weights under adapters are loaded in 16 bits, where a framework is known by its names to do so."""
    by = find("finetuning_type"), find("adapter")
    named = next((at for at in by if at and text(at[1]) in _ADAPTERS), None)
    half = next((at for at in map(find, ("bf16", "fp16", "bfloat16", "float16", "pure_bf16")) if _is_on(at)), None)
    if named is None or half is None:
        return None
    who = "LLaMA-Factory" if named is by[0] else "axolotl"
    return Said("base_dtype", "16-bit", half[0], f"{text(half[1])}, and {who} then loads frozen weights in 16 bits")


def _is_on(found: tuple[Key, object] | None) -> bool:
    return found is not None and (bool(flag(found[1])) or text(found[1]) == "auto")
