"""Changes to a job that may lower its need of memory, as somebody would write them into the job file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sagefit.catalog.instance_table import instances
from sagefit.errors import SagefitError
from sagefit.job import Job
from sagefit.job.entry_point import script_of
from sagefit.job.memory_model import WITHOUT_QLORA, DiffusionModel, Knob, Loader, VisionModel
from sagefit.job.names import plain
from sagefit.job.other_names import KNOBS
from sagefit.job.script_names import KNOBS_OF
from sagefit.job.values import Hyperparameter, as_text
from sagefit.memory import Diffusion, Measured, Tabular, Transformer, Vision, Workload
from sagefit.memory.knobs import argument, follows, name_of
from sagefit.memory.read import described
from sagefit.planning.candidate import MOST_INSTANCES
from sagefit.planning.choose import instances_for
from sagefit.planning.siblings import smaller

ELSEWHERE = ("sharding", "type", "instances")
"""Kinds of changes that only show on other instances."""

_NOT_TOLD_QLORA = (*WITHOUT_QLORA, "tensorflow", "megatron")
"""Stacks that do not have it, or have it in a way of their own: NeMo's on Megatron, int4 layers of Keras."""
_SPELT = {"adamw-8bit": "adamw_bnb_8bit", "flash": "flash_attention_2", "bf16-mixed": "bf16"}
# Names of transformers' TrainingArguments, and others by which a script that takes them is known.
_ARGUMENTS: dict[str, str] = {
    "micro_batch": "per_device_train_batch_size",
    "accumulation": "gradient_accumulation_steps",
    "gradient_checkpointing": "gradient_checkpointing",
    "precision": "bf16",
    "optimizer": "optim",
}
_OTHER_ARGUMENTS = ("num_train_epochs", "lr_scheduler_type", "per_device_eval_batch_size", "fp16", "logging_steps")
# Fields of a workload that a job file names otherwise.
_KNOBS = {"dataset_in_memory": "in_memory", "reference": "reference_model"}
_BLOCKS = {"workers": "loader", "prefetch": "loader", "in_memory": "dataset"}


@dataclass(frozen=True)
class Change:
    """A change to the job: its kind, how to write it, and the workload fields and instance count that it sets.

    ``described`` says that the memory block alone changes: it tells what the script does, and the script must do it.
    """

    kind: str
    text: str
    workload: Mapping[str, Any]
    instance_count: int | None = None
    described: bool = False


def to_do_in_the_script(changes: Iterable[Change]) -> str:
    """What to say below changes of which some only describe the script; empty where none does."""
    if not any(change.described for change in changes):
        return ""
    return "what changes below memory: only tells what the script does: make the same change in the script"


def changes_of(job: Job, now: Workload) -> Iterator[Change]:
    """The changes to try, the mildest of a kind first. None of them changes the effective batch.

    A change that would have no effect in the job file, or would contradict it, is left out.
    """
    return (change for change in _changes(job, now) if _takes(job, change))


def _changes(job: Job, now: Workload) -> Iterator[Change]:
    if not isinstance(now.model, Measured | Tabular):
        yield from _of_a_step(job, now)
    if isinstance(now.model, Transformer):
        yield from _of_transformers(job, now)
    if isinstance(now.model, Diffusion):
        yield from _encoders(now.model)
    if isinstance(now.model, Transformer | Diffusion):
        yield from _methods(now)
        yield from _sharding(job, now)
    if isinstance(now.model, Transformer) and now.sequence_length > 1:
        yield _of_knobs(job, "length", {"sequence_length": now.sequence_length // 2})
    for name, model in smaller(now.model):
        yield Change("model", f"a smaller model, memory.model: {name}, and the same in the script", {"model": model})
    if now.workers:
        yield _of_knobs(job, "workers", {"workers": 0})
    if now.dataset_in_memory and not isinstance(now.model, Tabular):
        yield _of_knobs(job, "dataset", {"in_memory": False})
    if job.resources.instance_type != "auto":
        yield from _instances(job, now)


def _of_a_step(job: Job, now: Workload) -> Iterator[Change]:
    for micro in _smaller(now.micro_batch):
        yield _of_knobs(
            job, "batch", {"micro_batch": micro, "accumulation": now.accumulation * (now.micro_batch // micro)}
        )
    if not now.gradient_checkpointing:
        yield _of_knobs(job, "checkpointing", {"gradient_checkpointing": True})
    if now.precision == "fp32":
        yield _of_knobs(job, "precision", {"precision": "bf16-mixed"})
    if now.optimizer in ("adamw", "adamw-kahan", "lion", "sgd-momentum"):
        yield _of_knobs(job, "optimizer", {"optimizer": "adamw-8bit"})


def _of_transformers(job: Job, now: Workload) -> Iterator[Change]:
    if now.attention != "flash" and now.precision != "fp32":
        yield _of_knobs(job, "attention", {"attention": "flash"})
    if now.method == "lora" and now.base_dtype == "default" and now.precision != "fp32":
        text = "memory.base_dtype: 16-bit, and torch_dtype=torch.bfloat16 where the script loads the model"
        yield Change("base", text, {"base_dtype": "16-bit"})
    if now.reference and now.objective == "dpo":
        text = "memory.reference_model: false, and precompute_ref_log_probs in the script"
        yield Change("reference", text, {"reference": False})
    if now.sampler == "vllm":
        text = "memory.sampler: vllm-sleeping, and vllm_enable_sleep_mode in the script"
        yield Change("sampler", text, {"sampler": "vllm-sleeping"})
    if now.stack == "hf-trainer" and now.objective == "supervised":
        told = _takes_arguments(job)
        text = "hyperparameters.use_liger_kernel: true" if told else "memory.stack: hf-liger"
        yield Change("stack", text, {"stack": "hf-liger"}, described=not told)


def _methods(now: Workload) -> Iterator[Change]:
    quantizes = isinstance(now.model, Transformer) and now.stack not in _NOT_TOLD_QLORA
    for method in {"full": ("lora", "qlora"), "lora": ("qlora",)}.get(now.method, ()):
        if method != "qlora" or quantizes:
            # The model with its adapters switched off is the reference.
            without = {"reference": False} if now.reference else {}
            yield Change("method", f"memory.method: {method}", {"method": method, **without}, described=True)


def _instances(job: Job, now: Workload) -> Iterator[Change]:
    yield Change("type", "resources.instance_type: auto", {})
    written = job.resources.instance_type
    types = [written] if isinstance(written, str) else written
    counts = {instances_for(now.world_size or 1, instances()[ml_type]) for ml_type in types}
    for count in sorted(counts):
        if job.resources.instance_count < count <= MOST_INSTANCES:
            yield Change("instances", f"resources.instance_count: {count}", {}, count)


def _encoders(model: Diffusion) -> Iterator[Change]:
    if model.encoders == "resident":
        text = "memory.model.encoders: unloaded, and the script frees them before the first step"
        yield Change("encoders", text, {"model": replace(model, encoders="unloaded")})
    if model.encoders != "cached":
        text = "memory.model.encoders: cached, and another run makes what they make"
        yield Change("encoders", text, {"model": replace(model, encoders="cached")})


def _sharding(job: Job, now: Workload) -> Iterator[Change]:
    counts = (1, 2, 4, 8) if job.resources.instance_type != "auto" else (job.resources.instance_count,)
    for count in counts:
        if count >= job.resources.instance_count and (now.stage < 3 or count > job.resources.instance_count):
            over = f" with resources.instance_count: {count}" if count > job.resources.instance_count else ""
            over += " and without memory.world_size" if now.world_size else ""
            kind = now.sharding if now.stage == 3 else "zero3"
            shards = {"sharding": kind, "world_size": None}
            # A change of the number of hosts alone is none of the script's.
            yield Change("sharding", f"memory.sharding: {kind}{over}", shards, count, described=kind != now.sharding)
    if now.sharding != "none" and now.cpu_offload == "none":
        yield Change("offload", "memory.cpu_offload: optimizer", {"cpu_offload": "optimizer"}, described=True)


def _of_knobs(job: Job, kind: str, knobs: Mapping[Knob, Hyperparameter]) -> Change:
    """A change of what hyperparameters of the job may set."""
    fields = {knob: field for field, knob in _KNOBS.items()}
    told = {knob: value for knob, value in knobs.items() if not follows(job, knob)}
    text = " with ".join(_written(job, knob, value) for knob, value in told.items())
    described = any(name_of(job, knob) is None and argument(job, knob) is None for knob in told)
    return Change(kind, text, {fields.get(knob, knob): value for knob, value in knobs.items()}, described=described)


def _written(job: Job, knob: Knob, value: Hyperparameter) -> str:
    """How ``knob`` is set in the job file: the hyperparameter that sets it, the memory block, or both."""
    name, spelt = _hyperparameter(job, knob, value)
    argued = _argument(job, knob, value)
    block = f"{_BLOCKS[knob]}." if knob in _BLOCKS else ""
    here = f"memory.{block}{knob}: {as_text(value)}"
    if argued:
        return f"code.arguments: {' '.join(argued)}{f' and {here}' if _is_written(job, knob) else ''}"
    if name is None:
        return here
    return f"hyperparameters.{name}: {as_text(spelt)}{f' and {here}' if _is_written(job, knob) else ''}"


def _hyperparameter(job: Job, knob: Knob, value: Hyperparameter) -> tuple[str | None, Hyperparameter]:
    """The hyperparameter that sets ``knob`` (None if the script has none), and ``value`` as scripts spell it."""
    name = name_of(job, knob)
    if name is None and argument(job, knob) is None and _takes_arguments(job):
        able = _ARGUMENTS.get(knob)
        name = able if able not in script_of(job).switches else None
    return _spelling(job, knob, name, value)


def _argument(job: Job, knob: Knob, value: Hyperparameter) -> list[str]:
    """The words of the command line that set ``knob``, if one of the job's arguments does; a switch has no value."""
    written = None if name_of(job, knob) else argument(job, knob)
    if written is None:
        return []
    name, spelt = _spelling(job, knob, written, value)
    if isinstance(spelt, bool):
        return [f"--{name}" if spelt else f"--no_{name}"]
    return [f"--{name}", as_text(spelt)]


def _spelling(job: Job, knob: Knob, name: str | None, value: Hyperparameter) -> tuple[str | None, Hyperparameter]:
    """The name that sets ``knob``, and ``value`` as scripts spell it there."""
    if knob == "precision" and name and name.lower() in ("bf16", "fp16"):
        return "bf16", True
    known = KNOBS_OF[knob].get(plain(name or ""))
    if known and known.words and (job.memory is None or knob not in job.memory.knobs):
        spelt = next((word for word, meant in known.words.items() if meant == value), None)
        return (name, value) if spelt is None else (name, {"true": True, "false": False}.get(spelt, spelt))
    return name, _SPELT.get(str(value), value)


def _takes_arguments(job: Job) -> bool:
    """Whether the script takes hyperparameters as ``TrainingArguments``: a Trainer that is given one by its name."""
    if job.memory is None or job.memory.stack not in ("hf-trainer", "hf-liger"):
        return False
    return any(plain(name) in (*_ARGUMENTS.values(), *_OTHER_ARGUMENTS) for name in job.hyperparameters)


def _is_written(job: Job, key: str) -> bool:
    """Whether the memory block sets ``key``; ``in_memory: false`` does not count."""
    block = getattr(job.memory, _BLOCKS[key]) if key in _BLOCKS else job.memory
    value = getattr(block, key, None)
    return value is not None and (value or key != "in_memory")


def _takes(job: Job, change: Change) -> bool:
    """Whether the job file with ``change`` in it gives the workload that the change promises."""
    if job.memory is None:
        return False
    memory: dict[str, Any] = {}
    hyperparameters, arguments = dict(job.hyperparameters), list[str]()
    for field, value in change.workload.items():
        key = _KNOBS.get(field, field)
        if key in KNOBS and follows(job, key):
            continue
        name, spelt = _hyperparameter(job, key, value) if key in KNOBS else (None, value)
        argued = _argument(job, key, value) if key in KNOBS else []
        if name:
            hyperparameters[name] = spelt
        arguments += argued
        if (name or argued) and not _is_written(job, key):
            continue
        if key == "model":
            memory[key] = _written_with(job.memory.model, value)
        elif block := _BLOCKS.get(key):
            holder = getattr(job.memory, block) or (Loader() if block == "loader" else None)
            if holder is None:
                return False
            memory[block] = holder.model_copy(update={key: value})
        else:
            memory[key] = value
    code = job.code.model_copy(update={"arguments": [*job.code.arguments, *arguments]}) if job.code else None
    changes = {"memory": job.memory.model_copy(update=memory), "hyperparameters": hyperparameters, "code": code}
    changed = job.model_copy(update=changes)
    try:
        workload = described(changed)
    except SagefitError:  # what it would contradict
        return False
    return all(getattr(workload, field) == value for field, value in change.workload.items())


def _written_with(written: object, model: Transformer | Vision | Diffusion) -> object:
    """``memory.model`` as it is written, with what a change sets: another name, or other encoders."""
    if isinstance(model, Diffusion):
        now = written if isinstance(written, DiffusionModel) else DiffusionModel(family="diffusion", name=model.name)
        return now.model_copy(update={"encoders": model.encoders})
    return written.model_copy(update={"name": model.name}) if isinstance(written, VisionModel) else model.name


def _smaller(batch: int) -> list[int]:
    """Smaller batches that divide ``batch``, down to 1."""
    halves = [batch // 2**k for k in range(1, batch.bit_length()) if batch % 2**k == 0]
    return halves if batch == 1 or 1 in halves else [*halves, 1]
