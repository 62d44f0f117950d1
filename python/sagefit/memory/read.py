"""From a job file and its hyperparameters to a workload: nothing is left to a default that is not named.

A number may stand in the memory block or in a hyperparameter. Where both say something else, the job contradicts
itself; where an attempt changes a hyperparameter, the attempt is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sagefit.job import Job
from sagefit.job.memory_model import Knob, Loader, Memory, TabularModel
from sagefit.job.problem import Problem
from sagefit.memory.knobs import name_of
from sagefit.memory.models import Resolved, resolve
from sagefit.memory.trace.store import with_trace
from sagefit.memory.values import ATTENTIONS, OPTIMIZERS, PRECISIONS, flag, text, whole
from sagefit.memory.workload import GIB, Tabular, Transformer, Vision, Workload

__all__ = ["described", "read", "resolve"]

T = TypeVar("T")
_MOST_BATCH = 10_000_000
_MOST_POSITIONS = 100_000_000
_PER_GPU_BY_HABIT = ("batch_size", "train_batch_size")


def read(job: Job, hyperparameters: Mapping[str, object] | None = None) -> Workload:
    """The workload of ``job`` with ``hyperparameters``: the job's own, or those merged with an attempt's.

    Its model is the traced one where there is a trace of exactly these inputs, else as `described`, which raises too.
    """
    workload = described(job, hyperparameters)
    return with_trace(job, workload, job.hyperparameters if hyperparameters is None else hyperparameters)


def described(job: Job, hyperparameters: Mapping[str, object] | None = None) -> Workload:
    """The workload as the job file alone describes it.

    ``model`` is None when the job file does not name one. Raises SagefitError that lists what contradicts itself or
    cannot be read, with fields and lines.
    """
    memory = job.memory
    if memory is None:
        return Workload(model=None, notes=("the job file has no memory block",))
    resolved = resolve(job)
    reader = _Reader(job, memory, job.hyperparameters if hyperparameters is None else hyperparameters)
    workload = _workload(reader, memory, resolved)
    if reader.problems:
        raise job.refusal(reader.problems)
    return workload


def _workload(reader: _Reader, memory: Memory, resolved: Resolved | None) -> Workload:
    model = resolved.model if resolved else None
    transformer = isinstance(model, Transformer)
    batch = reader.number("micro_batch", memory.micro_batch, most=_MOST_BATCH)
    length = reader.number("sequence_length", memory.sequence_length, most=_MOST_POSITIONS)
    rank = reader.number("lora_rank", memory.lora_rank, most=100_000) if memory.method != "full" else None
    if batch is None and isinstance(model, Transformer | Vision):
        reader.notes.append("no batch size is given, in memory.micro_batch or as a hyperparameter; taken as 1")
    if length is None and transformer:
        reader.notes.append(
            "no sequence length is given, in memory.sequence_length or as a hyperparameter; taken as 512"
        )
    if rank is None and memory.method != "full":
        reader.notes.append("memory.lora_rank is not given; taken as 16")
    if transformer and resolved and resolved.sequence > (length or 0):
        reader.notes.append(f"every sample has {resolved.sequence} positions in the encoder; that length is used")
        length = resolved.sequence
    size, in_memory = _dataset(memory, model)
    loader = memory.loader or Loader()
    in_memory = reader.boolean("in_memory", in_memory or None) or False
    workers = reader.number("workers", loader.workers, least=0, most=10_000) or 0
    if in_memory and workers:
        reader.notes.append("each loader worker comes to hold a copy of the dataset, as with Python objects")
    return Workload(
        model=model,
        method=memory.method,
        lora_rank=rank or 16,
        lora_targets=memory.lora_targets,
        precision=reader.precision(memory.precision),
        optimizer=reader.choice("optimizer", memory.optimizer, OPTIMIZERS) or "adamw",
        micro_batch=batch or 1,
        accumulation=reader.number("accumulation", memory.accumulation, most=_MOST_BATCH) or 1,
        sequence_length=length or 512,
        gradient_checkpointing=reader.boolean("gradient_checkpointing", memory.gradient_checkpointing) or False,
        attention=reader.choice("attention", memory.attention, ATTENTIONS) or "sdpa",
        sharding=memory.sharding,
        cpu_offload=memory.cpu_offload,
        world_size=memory.world_size,
        stack=memory.stack,
        loss=memory.loss,
        base_dtype=memory.base_dtype,
        workers=workers,
        prefetch=_or(reader.number("prefetch", loader.prefetch, least=0, most=10_000), 2),
        sample_bytes=loader.sample_bytes,
        dataset_gib=size,
        dataset_in_memory=in_memory,
        evaluation_batch=reader.number("evaluation_batch", memory.evaluation_batch, most=_MOST_BATCH),
        notes=(*(resolved.notes if resolved else ("memory.model is not given",)), *reader.notes),
    )


def _dataset(memory: Memory, model: object) -> tuple[float, bool]:
    """Size in GiB, and whether the memory block says that the script holds all of it."""
    table = memory.model
    if isinstance(table, TabularModel) and isinstance(model, Tabular):
        size = memory.dataset.size_gib if memory.dataset else 0.0
        return (table.rows * table.columns * table.dtype_bytes / GIB if table.rows and table.columns else size), True
    return (memory.dataset.size_gib, memory.dataset.in_memory) if memory.dataset else (0.0, False)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


class _Reader:
    """Looks values up in the hyperparameters, and collects what is wrong and what is assumed."""

    def __init__(self, job: Job, memory: Memory, hyperparameters: Mapping[str, object]) -> None:
        self.job = job
        self.memory = memory
        self.hyperparameters = hyperparameters
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def number(self, knob: Knob, written: int | None, *, most: int, least: int = 1) -> int | None:
        """A whole number from ``least`` to ``most``."""

        def parse(name: str, raw: object) -> int | None:
            value = whole(raw)
            if value is not None and least <= value <= most:
                if name in _PER_GPU_BY_HABIT and knob == "micro_batch":
                    self.notes.append(f"hyperparameters.{name}, {value}, is taken as the batch of one GPU")
                return value
            self._unusable(name, f"{raw!r} is no whole number from {least} to {most}", knob)
            return None

        return self._pick(knob, written, parse)

    def boolean(self, knob: Knob, written: bool | None) -> bool | None:
        """A boolean."""

        def parse(name: str, raw: object) -> bool | None:
            value = flag(raw)
            if value is None:
                self._unusable(name, f"{raw!r} is neither true nor false", knob)
            return value

        return self._pick(knob, written, parse)

    def choice(self, knob: Knob, written: T | None, table: Mapping[str, T]) -> T | None:
        """One of the values of ``table``, by its name there; a name that is not there is only noted."""

        return self._pick(knob, written, lambda name, raw: self._known(table, name, raw))

    def precision(self, written: Any) -> Any:
        """Precision, which Hugging Face spreads over two flags."""

        def parse(name: str, raw: object) -> Any:
            if name.lower() not in ("bf16", "fp16") or flag(raw) is None:
                return self._known(PRECISIONS, name, raw)
            flags = {kind: flag(self._value(kind)) for kind in ("bf16", "fp16")}
            if all(flags.values()):
                self._unusable(name, "bf16 and fp16 exclude each other", "precision")
            kind = next((kind for kind, on in flags.items() if on), None)
            return f"{kind}-mixed" if kind else "fp32"

        # Weights that are 16-bit throughout are trained with or without autocast.
        same = (("bf16", "bf16-mixed"), ("bf16", "fp32"))
        return self._pick("precision", written, parse, same) or "fp32"

    def _pick(
        self,
        knob: Knob,
        written: T | None,
        parse: Callable[[str, object], T | None],
        same: tuple[tuple[object, object], ...] = (),
    ) -> T | None:
        name = name_of(self.job, knob, self.hyperparameters)
        if name is None or name not in self.hyperparameters:
            return written
        raw = self.hyperparameters[name]
        value = parse(name, raw)
        if value is None or written is None or value == written or (written, value) in same:
            return value if written is None else written
        if raw != self.job.hyperparameters.get(name):
            return value
        line = self.job.line(("hyperparameters", name))
        where = f"hyperparameters.{name} (line {line})" if line else f"hyperparameters.{name}"
        self.problems.append(
            Problem(
                _field(knob),
                f"is {text(written)}, and {where} is {text(raw)}",
                f"keep one of them, or name the right hyperparameter in memory.knobs.{knob}",
            )
        )
        return written

    def _known(self, table: Mapping[str, T], name: str, raw: object) -> T | None:
        value = table.get(text(raw))
        if value is None:
            self.notes.append(f"hyperparameters.{name}, {raw!r}, is not known to the planner and not considered")
        return value

    def _value(self, name: str) -> object:
        return next((value for key, value in self.hyperparameters.items() if key.lower() == name), None)

    def _unusable(self, name: str, message: str, knob: Knob) -> None:
        knob_text = f"correct it, or name another hyperparameter in memory.knobs.{knob}"
        self.problems.append(Problem(("hyperparameters", name), message, knob_text))


def _field(knob: Knob) -> tuple[str, ...]:
    if knob in ("workers", "prefetch"):
        return ("memory", "loader", knob)
    return ("memory", "dataset", knob) if knob == "in_memory" else ("memory", knob)
