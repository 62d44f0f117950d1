"""Hyperparameters that nobody should take for read: those that look like fields of the memory block, and parallelism.

They are shown as the other `sagefit.job.remarks` are, with the sizing and every plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast, get_args

from sagefit.job import Job
from sagefit.job.given import Given
from sagefit.job.key import dotted
from sagefit.job.memory_model import Knob, Memory
from sagefit.job.names import plain
from sagefit.job.other_names import place_of, value_of
from sagefit.job.problem import Problem
from sagefit.job.remarks import remarks as of_job_files
from sagefit.job.script_names import PARALLEL, Kind
from sagefit.memory.doubts import doubts
from sagefit.memory.knobs import names_in
from sagefit.memory.other_models import other_models
from sagefit.memory.reader import Reader
from sagefit.memory.silent import is_said
from sagefit.memory.told import Told
from sagefit.memory.values import flag, text, whole

_TRAINED: tuple[Kind, ...] = ("language", "vision", "diffusion")
# Which fields a script may well have under another name, and for which kinds of models.
_FIELDS: Mapping[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("sequence_length", "attention", "lora_targets", "objective"), ("language",)),
    **dict.fromkeys(("lora_rank", "method", "base_dtype"), ("language", "diffusion")),
    **dict.fromkeys(("micro_batch", "accumulation", "gradient_checkpointing", "precision", "optimizer"), _TRAINED),
    **dict.fromkeys(("sharding", "cpu_offload", "loader.workers"), _TRAINED),
}
_NUMBERS = ("sequence_length", "lora_rank", "micro_batch", "accumulation", "loader.workers")
_CHOICES = ("attention", "objective", "method", "base_dtype", "precision", "optimizer", "sharding", "cpu_offload")
_DEFAULTS = ("none", "full", "default", "supervised", "fp32")


def remarks(job: Job) -> Iterator[Problem]:
    """Each remark on a job file, those on what the planner does not read included."""
    yield from of_job_files(job)
    if job.memory is not None:
        given = Given(job)
        reader, told = Reader(job, job.memory, given), Told(job, job.memory, given)
        yield from _parted(told)
        yield from other_models(job)
        yield from doubts(reader, told)
        yield from _lookalikes(reader, told)


def _parted(told: Told) -> Iterator[Problem]:
    """A model that is divided among GPUs in ways that are not planned."""
    found = [at for name in PARALLEL if (at := told.hyperparameter(name)) and (whole(at[1]) or 0) > 1]
    if found and "language" in told.kinds:
        others = "".join(f" and {dotted(place)} {text(value)}" for place, value in found[1:])
        message = (
            f"{text(found[0][1])}{others} {'are' if others else 'is'} not considered: tensor, pipeline and sequence "
            "parallelism are not planned, so each GPU is counted as if it held the whole model and whole sequences"
        )
        knob = "give the peaks of a run, memory.model: {family: measured, gpu_gib: ..., host_gib: ...}"
        yield Problem(found[0][0], message, knob, alone=True)


def _lookalikes(reader: Reader, told: Told) -> Iterator[Problem]:
    """A remark for each field that nothing says: on the first hyperparameter that looks like it and is not read."""
    kinds, memory = set(told.kinds), reader.memory
    given = reader.hyperparameters
    read = {*told.seen, *memory.knobs.values()}
    read |= {name for knob in get_args(Knob) for name in names_in(reader.job, cast("Knob", knob), given)}
    remarked: set[str] = set()
    for name, value in given.items():
        field = _field(name) if name not in read else ""
        if not kinds & set(_FIELDS.get(field, ())) or not _means(field, value) or is_said(reader, told, field):
            continue
        if field in remarked:
            continue
        remarked.add(field)
        yield Problem(
            given.place(name) or ("hyperparameters", name),
            f"looks like memory.{field} and is not read",
            f"give memory.{field}",
        )


def _field(name: str) -> str:
    """The field that ``name`` is another name of; empty where it is none."""
    if plain(name) in Memory.model_fields:
        return plain(name)
    found = re.match(r"[a-z_.]+", place_of(("memory",), name) or "")
    return found[0] if found else ""


def _means(field: str, value: object) -> bool:
    """Whether ``value`` could be one of ``field`` that is not what is taken anyway."""
    if flag(value) is False:
        return False
    if field in _NUMBERS:
        return (whole(value) or 0) > 0
    if field not in _CHOICES or flag(value):
        return True
    known = value_of(("memory", field), text(value), _choices(Memory.model_fields[field].annotation))
    return known is not None and known not in _DEFAULTS


def _choices(annotation: object) -> list[str]:
    """The words of a field that has some, or may have none of them."""
    return [annotation] if isinstance(annotation, str) else [w for part in get_args(annotation) for w in _choices(part)]
