"""What nothing says of a job: neither the memory block, nor a hyperparameter, nor a file that the script is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

from sagefit.job.memory_model import Knob
from sagefit.memory.knobs import name_of
from sagefit.memory.reader import Reader
from sagefit.memory.told import Told
from sagefit.memory.values import flag
from sagefit.memory.workload import Transformer


def is_said(reader: Reader, told: Told, field: str) -> bool:
    """Whether the memory block or another place says what ``field`` is, which may be one of a block: loader.workers."""
    block, _, last = field.rpartition(".")
    holder = getattr(reader.memory, block) if block else reader.memory
    written = holder is not None and last in holder.model_fields_set
    knob = last if last in get_args(Knob) else None
    named = knob is not None and name_of(reader.job, cast("Knob", knob), reader.hyperparameters) is not None
    return written or named or told.says(field)


def silent_defaults(reader: Reader, told: Told, model: object, *, evaluates: bool) -> Iterator[str]:
    """One line with all that is taken without a word of the job, where a default decides; none where nothing is."""
    taken = []
    if not (is_said(reader, told, "method") or _is_off(told, "use_peft") or _is_off(told, "use_lora")):
        taken.append("method: full (all parameters are trained)")
    if isinstance(model, Transformer) and not is_said(reader, told, "objective"):
        taken.append("objective: supervised")
    if not (is_said(reader, told, "gradient_checkpointing") or told.checkpoints_by_default()):
        taken.append("no gradient_checkpointing")
    if isinstance(model, Transformer) and not is_said(reader, told, "attention"):
        taken.append("attention: sdpa")
    if not (evaluates or _is_off(told, "do_eval") or _is_off(told, "eval_strategy")):
        taken.append("no evaluation_batch (it does not evaluate)")
    if taken:
        yield f"nothing says otherwise, so this is taken: {', '.join(taken)}"


def _is_off(told: Told, name: str) -> bool:
    found = told.hyperparameter(name)
    return found is not None and flag(found[1]) is False
