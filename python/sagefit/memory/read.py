"""From a job file and its hyperparameters to a workload: every default that is used is named.

A number may be in the memory block or in a hyperparameter. If the two differ, the job contradicts itself. If an attempt
changes a hyperparameter, the value of the attempt counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from sagefit.job import Job
from sagefit.job.given import Given
from sagefit.job.key import dotted
from sagefit.job.memory_model import (
    Checkpointing,
    Knob,
    Loader,
    Memory,
    Objective,
    Optimizer,
    Precision,
    Step,
    TabularModel,
)
from sagefit.job.memory_rules import OF_VECTORS, method_problems, objective_problems, sharing_problems
from sagefit.job.names import plain
from sagefit.job.other_names import ATTENTIONS, OPTIMIZERS, STEPS
from sagefit.job.problem import Problem
from sagefit.memory import diffusion_models, software
from sagefit.memory.deepspeed import REDUCE_BUCKET, Zero
from sagefit.memory.habits import (
    default_batch,
    default_evaluation,
    default_precision,
    default_steps,
    default_workers,
)
from sagefit.memory.image_sizes import sized
from sagefit.memory.knobs import name_of
from sagefit.memory.learned import with_peaks
from sagefit.memory.models import Resolved, resolve, teacher
from sagefit.memory.objectives import EMBEDDING_MODELS, NEEDS, SHARE
from sagefit.memory.other_models import proposed
from sagefit.memory.peaks import Record
from sagefit.memory.reader import Reader
from sagefit.memory.searched import most_demanding
from sagefit.memory.silent import silent_defaults
from sagefit.memory.told import Told
from sagefit.memory.trace.store import with_trace
from sagefit.memory.values import same, text
from sagefit.memory.workload import Diffusion, Kronecker, Tabular, Transformer, Vision, Workload

__all__ = ["described", "read", "resolve"]

_MOST_BATCH = 10_000_000
_MOST_POSITIONS = 100_000_000
_USUAL_LENGTH = 512


def read(job: Job, hyperparameters: Mapping[str, object] | None = None, also: tuple[Record, ...] = ()) -> Workload:
    """The workload of ``job`` with ``hyperparameters``: the job's own, or those merged with an attempt's.

    The model comes from a trace of exactly these inputs, if there is one; else from `described`. Raises as `described`
    does. Peaks of earlier runs that apply are included, those that are kept beside the job file and ``also`` these. A
    job that tunes is read as its most demanding trial.
    """

    def peaks(job: Job, hyperparameters: Mapping[str, object]) -> Workload:
        return with_peaks(job, hyperparameters, _traced, also)

    return most_demanding(job, job.hyperparameters if hyperparameters is None else hyperparameters, peaks)


def _traced(job: Job, hyperparameters: Mapping[str, object]) -> Workload:
    return with_trace(job, described(job, hyperparameters), hyperparameters)


def described(job: Job, hyperparameters: Mapping[str, object] | None = None) -> Workload:
    """The workload as the job file alone describes it.

    ``model`` is None when the job file does not name one. Raises SagefitError that lists what contradicts itself or
    cannot be read, with fields and lines.
    """
    memory = job.memory
    if memory is None:
        return Workload(model=None, notes=(_with_proposal(job, "the job file has no memory block"),))
    resolved = resolve(job)
    given = Given(job, hyperparameters)
    reader, told = Reader(job, memory, given), Told(job, memory, given)
    workload = _workload(reader, told, memory, resolved)
    sharing = workload.sharding, workload.cpu_offload, workload.stack, workload.base_dtype
    places = {field: told.place(field) for field in ("sharding", "base_dtype")}
    said = {field: at for field, at in places.items() if at and field not in memory.model_fields_set}
    shared = sharing_problems(*sharing, said)
    written = "method" in memory.model_fields_set  # then the rules of the job file have asked
    trained = [] if written else method_problems(memory, workload.method, workload.stack)
    if problems := [*reader.problems, *told.problems, *shared, *trained]:
        raise job.refusal(problems)
    return workload


def _with_proposal(job: Job, lack: str) -> str:
    found = proposed(job)
    return f"{lack}; {found}" if found else lack


def _workload(reader: Reader, told: Told, memory: Memory, resolved: Resolved | None) -> Workload:
    model = resolved.model if resolved else None
    objective: Objective = told.get("objective")
    if objective != "supervised" and model is not None:
        if not isinstance(model, Transformer) or model.architecture not in _architectures(objective):
            reader.problems.append(_unknown_objective(told, objective))
        elif objective in OF_VECTORS:
            model = replace(model, head="classification")
    model = sized(reader, told, model)
    batch = _counted(reader, told, "micro_batch")
    length = _length(reader, told, memory, resolved)
    method = told.get("method")
    rank = reader.number("lora_rank", memory.lora_rank, most=100_000) if method != "full" else None
    if batch is None and isinstance(model, _OF_STEPS):
        batch, default = default_batch(told.get("stack"), told.kinds) or (1, "")
        whose = f"{batch}, {default}" if default else "1"
        reader.notes.append(f"no batch size is given, in memory.micro_batch or as a hyperparameter; taken as {whose}")
    if rank is None and method != "full" and memory.lokr is None:
        reader.notes.append("memory.lora_rank is not given; taken as 16")
    precision = _precision(reader, told, model)
    attention = reader.choice("attention", memory.attention, ATTENTIONS) or "sdpa"
    if attention == "flash" and precision == "fp32":
        reader.problems.append(_flash_in_fp32(reader))
    if isinstance(model, Diffusion):
        reader.problems += _unknown_of_denoisers(reader, method, attention)
    checkpointing = _checkpointing(reader, told, model)
    size, in_memory = _dataset(memory, model)
    evaluation = _evaluation(reader, told, model, batch or 1)
    if isinstance(model, _OF_STEPS):
        reader.notes += silent_defaults(reader, told, model, evaluates=evaluation is not None)
    loader = memory.loader or Loader()
    in_memory = reader.boolean("in_memory", in_memory or None) or False
    workers = _workers(reader, told, loader)
    if in_memory and workers:
        reader.notes.append("each loader worker comes to hold a copy of the dataset, as with Python objects")
    return Workload(
        model=model,
        method=method,
        lora_rank=rank or 16,
        lora_targets=memory.lora_targets if method == "full" else told.get("lora_targets"),
        lokr=_lokr(reader, memory, model),
        precision=precision,
        optimizer=_optimizer(reader, told, model),
        step=_step(reader, told),
        torch=software.torch(reader.job),
        micro_batch=batch or 1,
        accumulation=_counted(reader, told, "accumulation") or _steps(told, memory, batch or 1),
        sequence_length=length,
        encoder_length=resolved.sequence or None if resolved else None,
        gradient_checkpointing=bool(checkpointing),
        checkpointing=checkpointing if isinstance(checkpointing, str) else "default",
        attention=attention,
        sharding=told.get("sharding"),
        cpu_offload=told.get("cpu_offload"),
        world_size=memory.world_size,
        stack=told.get("stack"),
        loss=memory.loss,
        base_dtype=told.get("base_dtype"),
        **_seeing(reader, told, model, length, method),
        **_compared(reader, told, objective, method),
        workers=workers,
        prefetch=_or(reader.number("prefetch", loader.prefetch, least=0, most=10_000), 2),
        sample_bytes=loader.sample_bytes,
        dataset_gib=size,
        dataset_in_memory=in_memory,
        evaluation_batch=evaluation,
        frees_at_once="MALLOC_MMAP_THRESHOLD_" in reader.job.environment,
        expandable_segments=_expandable(reader.job.environment),
        hugging_face=reader.job.image.framework == "huggingface",
        saves_shards=told.saves_shards,
        wrapped=told.wrapped,
        zero=_zero(told, memory, model),
        notes=(
            *(resolved.notes if resolved else (_with_proposal(reader.job, "memory.model is not given"),)),
            *_quantized(resolved, told, method),
            *reader.said_elsewhere(),
            *reader.notes,
            *told.notes,
        ),
    )


def _zero(told: Told, memory: Memory, model: object) -> Zero:
    """Numbers of DeepSpeed: those of its configuration; a script that starts it by itself has its defaults else."""
    zero = told.zero
    if zero == Zero() and (told.value("stack") or memory.stack) == "deepspeed":
        zero = Zero(bucket=REDUCE_BUCKET)
    return zero.of(model.hidden) if isinstance(model, Transformer) else zero


_OF_STEPS = (Transformer, Vision, Diffusion)
_TRAINER = ("hf-trainer", "hf-liger", "ms-swift")


def _steps(told: Told, memory: Memory, batch: int) -> int:
    """The batches of a step where nothing says them; what Ultralytics' own ``batch`` means is read already."""
    silent = memory.micro_batch is None and told.hyperparameter("batch") is None
    return default_steps(batch, told.kinds) if silent else 1


def _workers(reader: Reader, told: Told, loader: Loader) -> int:
    workers = reader.number("workers", loader.workers, least=0, most=10_000)
    if workers is None:
        workers, default = default_workers(told.kinds)
        if default:
            reader.notes.append(f"no number of loader workers is given; taken as {workers}, {default}")
    return workers


def _counted(reader: Reader, told: Told, knob: Literal["micro_batch", "accumulation"]) -> int | None:
    """A batch or a number of steps, which a DeepSpeed configuration may give beside a hyperparameter.

    Hugging Face's Trainer demands that they agree, and others go by the configuration.
    """
    name = name_of(reader.job, knob, reader.hyperparameters)
    written = reader.memory.micro_batch if knob == "micro_batch" else reader.memory.accumulation
    if not told.says(knob) or knob in reader.memory.knobs:
        return reader.number(knob, written, most=_MOST_BATCH)
    if name is None:
        return _whole(told.get(knob))
    theirs, place = told.value(knob), dotted(told.place(knob) or ())
    trainer = reader.memory.stack in _TRAINER or plain(name) == "per_device_train_batch_size"
    ours = reader.hyperparameters[name]
    if not trainer and plain(place) != "hyperparameters.batch":
        if not same(ours, theirs):
            reader.notes.append(
                f"{reader.hyperparameters.named(name)}, {text(ours)}, is not what {place} says, which counts"
            )
        return _whole(told.get(knob))
    if not same(ours, theirs):
        demand = "; the Trainer demands that they agree" if trainer else ""
        reader.notes.append(
            f"{place} says {knob} {theirs}, and {reader.hyperparameters.named(name)} {text(ours)}, which counts{demand}"
        )
    return reader.number(knob, written, most=_MOST_BATCH)


def _evaluation(reader: Reader, told: Told, model: object, batch: int) -> int | None:
    given = reader.number("evaluation_batch", reader.memory.evaluation_batch, most=_MOST_BATCH)
    if given is not None or not isinstance(model, _OF_STEPS):
        return given
    return default_evaluation(told.hyperparameter, told.get("stack"), batch, reader.notes)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _or_told(reader: Reader, told: Told, knob: Knob, value: Any) -> Any:
    """``value``, or what another place than a hyperparameter of ``knob`` says."""
    if told.says(knob) and name_of(reader.job, knob, reader.hyperparameters) is None:
        return told.get(knob)
    return value


def _optimizer(reader: Reader, told: Told, model: object) -> Optimizer:
    named = _or_told(reader, told, "optimizer", reader.choice("optimizer", reader.memory.optimizer, OPTIMIZERS))
    if named is None and isinstance(model, _OF_STEPS) and told.get("stack") not in _TRAINER:
        reader.notes.append("no optimizer is given, in memory.optimizer or as a hyperparameter; taken as adamw")
    return named or "adamw"


def _precision(reader: Reader, told: Told, model: object) -> Precision:
    given = _or_told(reader, told, "precision", reader.precision(reader.memory.precision))
    default, whose = default_precision(told.kinds)
    precision: Precision = given or default
    place = told.place("weights")
    if place and reader.memory.precision is None and precision != "fp16-mixed":
        told.notes.append(
            f"{dotted(place)} loads the model in 16 bits, and so it is trained: precision is taken as bf16"
        )
        return "bf16"
    if given is None and isinstance(model, _OF_STEPS):
        lack = "no precision is given, in memory.precision or as a hyperparameter"
        reader.notes.append(f"{lack}; taken as {precision}{whose}")
    return precision


def _checkpointing(reader: Reader, told: Told, model: object) -> Checkpointing:
    found = reader.checkpointing(reader.memory.gradient_checkpointing)
    if not found and told.says("gradient_checkpointing"):
        found = told.get("gradient_checkpointing")
    if found is None and isinstance(model, Transformer) and (default := told.checkpoints_by_default()):
        told.notes.append(f"{default}; taken as true")
        return True
    return found or False


def _quantized(resolved: Resolved | None, told: Told, method: str) -> Iterator[str]:
    if resolved and resolved.four_bit and method != "qlora":
        said = "the method" if told.says("method") else "memory.method"
        yield f"config.json: its 4-bit quantization_config is ignored, as {said} is {method}, not qlora"


def _seeing(reader: Reader, told: Told, model: object, length: int, method: str) -> dict[str, Any]:
    """Fields of the workload that say what a vision-language model sees."""
    memory = reader.memory
    if not isinstance(model, Transformer) or model.tower is None:
        for name in ("image_tokens", "vision_tower"):
            if getattr(memory, name) is not None and model is not None:
                problem = Problem(("memory", name), "the model has no vision tower", "remove it")
                reader.problems.append(problem)
        return {}
    tokens, tower = memory.image_tokens, told.get("vision_tower")
    if tokens is not None and tokens > length:
        reader.problems.append(
            Problem(
                ("memory", "image_tokens"),
                f"{tokens} tokens of a sequence of {length} cannot come from images",
                "lower it, or raise sequence_length, which counts them too",
            )
        )
    if tokens is None:
        tokens = length
        told.notes.append(f"every token is taken to come from an image, {length}; memory.image_tokens says how many do")
    if tower is None:
        tower = "frozen" if told.get("stack") == "ms-swift" else "trained"
        told.notes.append(
            "the vision tower is frozen, as ms-swift does; memory.vision_tower: trained if it is not"
            if tower == "frozen"
            else f"the vision tower is trained too{'' if method == 'full' else ', by adapters'}; memory.vision_tower: "
            "frozen if it is not"
        )
    return {"image_tokens": tokens, "vision_tower": tower}


def _compared(reader: Reader, told: Told, objective: Objective, method: str) -> dict[str, Any]:
    """Fields of the workload that say what an objective has beside the model."""
    needs, memory = NEEDS[objective], reader.memory
    if "objective" not in memory.model_fields_set:
        reader.problems += objective_problems(memory, objective)
    if objective == "supervised":
        if isinstance(memory.model, str) and memory.model.lower().startswith(EMBEDDING_MODELS):
            told.notes.append("one text of an example counts; with objective: contrastive two do, with triplet three")
        return {}
    given = told.get("reference_model") if needs.reference else None
    reference = needs.reference and (method == "full" if given is None else given)
    if needs.reference and given is None:
        like = ", as with TRL 1 and no beta" if objective == "grpo" else ""
        copy = "a frozen copy of the model; memory.reference_model: false if there is none"
        told.notes.append(
            f"{objective} compares with {copy}{like}"
            if reference
            else f"{objective} compares with the model without its adapters, so there is no copy of it"
        )
    sampler = (told.get("sampler") or "transformers") if needs.samples else "elsewhere"
    share = (told.get("sampler_share") or SHARE) if sampler.startswith("vllm") else 0.0
    if needs.samples and sampler == "transformers":
        told.notes.append("answers are sampled by the model itself; memory.sampler names vllm, or elsewhere")
    if share and not told.says("sampler_share") and memory.sampler_share is None:
        told.notes.append(f"vLLM takes {SHARE:.0%} of a GPU's memory; memory.sampler_share says another share")
    return {
        "objective": objective,
        "reference": reference,
        "teacher": _teacher(reader, told) if objective == "gkd" else None,
        "sampler": sampler,
        "sampler_share": share,
    }


def _teacher(reader: Reader, told: Told) -> Transformer | None:
    name = told.get("teacher_model")
    if name is None:
        told.notes.append("the teacher is taken as large as the model; memory.teacher_model names it")
        return None
    written = reader.memory.teacher_model is not None
    found = teacher(reader.job, name, ("memory", "teacher_model") if written else ("hyperparameters", "teacher_model"))
    if found is None:
        told.notes.append(f"no teacher is known as {name[:80]!r}, so it is taken as large as the model")
    return found


def _architectures(objective: Objective) -> tuple[str, ...]:
    return ("decoder", "encoder") if objective in OF_VECTORS else ("decoder",)


def _unknown_objective(told: Told, objective: Objective) -> Problem:
    told_by = told.place("objective")
    problem = f"what {objective} of a model that is no {' or '.join(_architectures(objective))} needs is not known"
    knob = "give measured peaks (family: measured) without it, or objective: supervised"
    return Problem(told_by or ("memory", "objective"), problem, knob)


def _length(reader: Reader, told: Told, memory: Memory, resolved: Resolved | None) -> int:
    """Tokens of each sample; in the decoder, where the encoder has a length of its own."""
    given = reader.number("sequence_length", memory.sequence_length, most=_MOST_POSITIONS)
    length = _whole(_or_told(reader, told, "sequence_length", given))
    if resolved is None or not isinstance(resolved.model, Transformer):
        return length or _USUAL_LENGTH
    longest = resolved.positions
    if length is None:
        length = min(_USUAL_LENGTH, longest or _USUAL_LENGTH)
        reader.notes.append(
            f"no sequence length is given, in memory.sequence_length or as a hyperparameter; taken as {length}"
        )
    if resolved.sequence:
        reader.notes.append(
            f"every sample has {resolved.sequence} tokens in the encoder, and {length} (sequence_length) in the decoder"
        )
    if longest and length > longest:
        message = f"{length} tokens, and {resolved.model.name} has positions for {longest}"
        if resolved.sequence:
            reader.problems.append(
                Problem(
                    reader.source("sequence_length"),
                    f"{message} in its decoder, which is what sequence_length is of",
                    f"lower it; the encoder has {resolved.sequence} anyway",
                )
            )
        else:
            reader.notes.append(f"sequence length: {message}")
    return length


def _step(reader: Reader, told: Told) -> Step:
    """Whose kernels update the weights: those of the optimizer by its name, or of the Trainer's default.

    DeepSpeed may have an optimizer of its own.
    """
    name = name_of(reader.job, "optimizer", reader.hyperparameters)
    if name is not None and name in reader.hyperparameters:
        said = text(reader.hyperparameters[name])
        if said.startswith("paged"):
            reader.notes.append(
                f"{reader.hyperparameters.named(name)}: paged states are counted on the GPU; they move to the host, "
                "and training is slower, where memory is short"
            )
        return STEPS.get(said, "foreach")
    by_trainer = told.get("stack") in ("hf-trainer", "hf-liger") and not told.get("sharding").startswith("zero")
    if reader.memory.optimizer is not None or not by_trainer or not software.fuses_by_default(reader.job):
        return "foreach"
    reader.notes.append("no optimizer is named, so it is the Trainer's default in this image, adamw_torch_fused")
    return "fused"


def _lokr(reader: Reader, memory: Memory, model: object) -> Kronecker | None:
    said = memory.lokr
    if said is None:
        return None
    if not isinstance(model, Diffusion):
        problem = "adapters of LoKr are counted for denoisers of diffusion models only"
        reader.problems.append(Problem(("memory", "lokr"), problem, "give lora_rank, or measured peaks"))
    elif said.feed_forward and not diffusion_models.resolve(model).adapts_feed_forward:
        problem = f"{model.name} has no feed-forward layers that LoKr would find by their class"
        reader.problems.append(Problem(("memory", "lokr", "feed_forward"), problem, "remove it"))
    return Kronecker(said.attention, said.feed_forward)


def _unknown_of_denoisers(reader: Reader, method: str, attention: str) -> Iterator[Problem]:
    measured = "or give measured peaks (family: measured)"
    if method == "qlora":
        problem = "what a denoiser with 4-bit weights needs is not known"
        knob = f"lora has the frozen denoiser in 16 bits, or in 8 with base_dtype: 8-bit; {measured}"
        yield Problem(("memory", "method"), problem, knob)
    if attention == "eager":
        problem = "what a denoiser with eager attention needs is not known"
        yield Problem(reader.source("attention"), problem, f"sdpa is what diffusers uses by itself; {measured}")


def _flash_in_fp32(reader: Reader) -> Problem:
    said = reader.memory.precision or name_of(reader.job, "precision", reader.hyperparameters)
    return Problem(
        reader.source("attention"),
        "FlashAttention computes in fp16 and bf16 only, and precision is fp32" + ("" if said else ": nothing sets it"),
        "set memory.attention: sdpa, or memory.precision: bf16-mixed, or the hyperparameter that the script reads",
    )


def _dataset(memory: Memory, model: object) -> tuple[float, bool]:
    """Size in GiB, and whether the memory block says that the script holds all of it."""
    table = memory.model
    if isinstance(table, TabularModel) and isinstance(model, Tabular):
        size = memory.dataset.size_gib if memory.dataset else 0.0
        return (size if table.size_gib is None else table.size_gib), True
    return (memory.dataset.size_gib, memory.dataset.in_memory) if memory.dataset else (0.0, False)


def _expandable(environment: Mapping[str, object]) -> bool:
    """Whether the job's environment tells torch's allocator to grow segments (the newer name replaces the older)."""
    settings = environment.get("PYTORCH_ALLOC_CONF") or environment.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    return "expandable_segments:true" in str(settings).lower().replace(" ", "")


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
