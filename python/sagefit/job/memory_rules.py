"""Rules between the fields of the ``memory`` block. What needs the presets or the hyperparameters is in
`sagefit.memory.read`.

Sources: the DeepSpeed configuration reference (``offload_optimizer`` is for ZeRO stages 1 to 3, ``offload_param``
for stage 3 only); the flash-attn README (fp16 and bf16 only); Ainslie et al. 2023 (query heads share key heads in
groups of one size); torchtitan/components/lora.py (LoRA without quantization; NeMo has QLoRA on Megatron, and Keras
LoRA on int4 layers).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from sagefit.job.given import Given, spelt
from sagefit.job.key import Key, dotted
from sagefit.job.memory_model import (
    WITHOUT_FSDP,
    WITHOUT_QLORA,
    Memory,
    Method,
    Objective,
    Offload,
    Sharding,
    Stack,
    TabularModel,
    Trace,
    TransformerModel,
)
from sagefit.job.problem import Problem
from sagefit.job.script_names import NAMES_OF_METHODS
from sagefit.nearest import did_you_mean

if TYPE_CHECKING:
    from sagefit.job.model import Job

ACCELERATE = ("accelerate_config", "accelerate_config_file", "config_file")
"""Hyperparameters that may name a configuration of Accelerate."""
_SHARDS = ("fsdp", "deepspeed", "deepspeed_config", *ACCELERATE)
_OFFLOADS_ALONE = ("torchtune", "plain-torch", "unknown")  # torchao's CPU offload optimizer needs no sharding
_SAME_TABLE = 0.20  # relative difference beyond which two sizes are of two tables
_IN_BILLIONS = 10_000


def memory_problems(job: Job) -> Iterator[Problem]:
    """Every problem of the memory block of ``job`` that its types do not find."""
    memory = job.memory
    if memory is None:
        return
    if isinstance(memory.model, TransformerModel):
        yield from _transformer(memory.model)
    if isinstance(memory.model, TabularModel):
        yield from _tabular(job, memory.model, memory)
    if "method" in memory.model_fields_set or not _trains_as_told(job):
        yield from method_problems(memory, memory.method, memory.stack)
    yield from _adapters(memory)
    if "objective" in memory.model_fields_set:
        yield from objective_problems(memory, memory.objective)
    if not _shards_as_told(job):
        yield from sharing_problems(memory.sharding, memory.cpu_offload, memory.stack, memory.base_dtype)
    yield from _knobs(job, memory)
    if memory.trace is not None:
        yield from _trace(job, memory.trace)


def _transformer(model: TransformerModel) -> Iterator[Problem]:
    kv_heads = model.kv_heads or model.heads
    if model.head_dim is None and model.hidden_size % model.heads:
        yield Problem(
            ("memory", "model", "heads"),
            f"hidden_size ({model.hidden_size}) must be a multiple of heads ({model.heads})",
            "correct one of them, or give head_dim where heads are not hidden_size / heads wide",
        )
    if model.params < model.layers * model.hidden_size:
        yield Problem(
            ("memory", "model", "params"),
            f"{model.params:g} parameters are fewer than {model.layers} layers of width {model.hidden_size} have",
            f"write all of them: {model.params * 1e9:.12g}, if these are billions"
            if model.params < _IN_BILLIONS
            else "write all of them, for example 7.0e9",
        )
    if model.heads % kv_heads:
        yield Problem(
            ("memory", "model", "kv_heads"),
            f"heads ({model.heads}) must be a multiple of kv_heads ({kv_heads})",
            "correct one of them",
        )
    if (model.experts_per_token or 1) > model.experts:
        yield Problem(
            ("memory", "model", "experts_per_token"),
            f"a token cannot visit {model.experts_per_token} of {model.experts} experts",
            "raise experts, or lower it",
        )
    if model.experts > 1 and model.experts_per_token is None:
        yield Problem(
            ("memory", "model", "experts"),
            f"how many of {model.experts} experts each token visits decides how much memory they need",
            "add experts_per_token (num_experts_per_tok in config.json)",
        )
    if model.encoder_layers is not None and model.architecture != "encoder-decoder":
        yield Problem(
            ("memory", "model", "encoder_layers"),
            f"the layers of an architecture {model.architecture!r} are all in layers",
            "remove it, or set architecture: encoder-decoder",
        )


def _tabular(job: Job, model: TabularModel, memory: Memory) -> Iterator[Problem]:
    if (model.rows is None) != (model.columns is None):
        yield Problem(("memory", "model"), "rows and columns give the size together", "give both or none")
    elif model.rows is None and memory.dataset is None:
        yield Problem(
            ("memory", "model"),
            "the size of the table decides how much memory it needs",
            "add rows and columns, or memory.dataset.size_gib",
        )
    elif model.size_gib is not None and memory.dataset is not None:
        given, counted = memory.dataset.size_gib, model.size_gib
        if abs(given / counted - 1) > _SAME_TABLE:
            line = job.line(("memory", "model", "rows"))
            yield Problem(
                ("memory", "dataset", "size_gib"),
                f"is {given:g} GiB, and memory.model.rows x columns x dtype_bytes (line {line}), {model.rows} x "
                f"{model.columns} x {model.dtype_bytes}, are {counted:.4g} GiB",
                "keep one of them: rows and columns, or dataset.size_gib",
            )


def method_problems(memory: Memory, method: Method, stack: Stack) -> Iterator[Problem]:
    """Fields that only some methods have, where ``method`` is what trains, and methods that ``stack`` lacks."""
    if method == "full":
        for name in ("lora_rank", "lora_targets", "lokr", "base_dtype"):
            if name in memory.model_fields_set:
                yield Problem(
                    ("memory", name), "method is full, which trains no adapters", "set method: lora, or remove it"
                )
    if method == "qlora" and stack in WITHOUT_QLORA:
        yield Problem(
            ("memory", "method"),
            f"{stack} has no qlora: it trains LoRA adapters, and has no 4-bit weights for them",
            "set method: lora, or another stack",
        )


def _adapters(memory: Memory) -> Iterator[Problem]:
    if memory.lokr is not None:
        for name in ("lora_rank", "lora_targets"):
            if name in memory.model_fields_set:
                yield Problem(
                    ("memory", name),
                    "adapters of LoKr have no rank, and are on the layers that lokr gives a factor",
                    "remove it, or lokr",
                )
    if memory.attention == "flash" and memory.precision == "fp32":
        yield Problem(
            ("memory", "attention"),
            "FlashAttention computes in fp16 and bf16 only, and precision is fp32",
            "set attention: sdpa, or precision: bf16-mixed",
        )


_COMPARES = ("dpo", "kto", "grpo")
_SAMPLES = ("grpo", "gkd")
OF_VECTORS: dict[Objective, str] = {"reward": "one value", "contrastive": "a vector", "triplet": "a vector"}
"""Objectives that need no vocabulary, with what they have instead."""


def objective_problems(memory: Memory, objective: Objective) -> Iterator[Problem]:
    """Fields that only some objectives have, where ``objective`` is what is trained."""
    only: dict[str, tuple[tuple[str, ...], str]] = {
        "reference_model": (_COMPARES, "which compares with no copy of the model"),
        "teacher_model": (("gkd",), "which has no teacher"),
        "sampler": (_SAMPLES, "which samples no answers"),
        "sampler_share": (_SAMPLES, "which samples no answers"),
    }
    for name, (having, why) in only.items():
        if getattr(memory, name) is not None and objective not in having:
            problem = f"objective is {objective}, {why}"
            yield Problem(("memory", name), problem, f"remove it, or set objective: {' or '.join(having)}")
    if memory.sampler_share is not None and memory.sampler in ("transformers", "elsewhere"):
        problem = f"sampler is {memory.sampler}, and only vLLM takes a share of a GPU's memory"
        yield Problem(("memory", "sampler_share"), problem, "remove it, or set sampler: vllm")
    if objective in OF_VECTORS and memory.head == "lm":
        instead = f"puts {OF_VECTORS[objective]} where a language model has its vocabulary"
        problem = f"objective is {objective}, which {instead}"
        yield Problem(("memory", "head"), problem, "remove it, or set another objective")


def _knobs(job: Job, memory: Memory) -> Iterator[Problem]:
    attempts = [] if job.attempts == "auto" else job.attempts
    known = list(dict.fromkeys((*job.hyperparameters, *(name for a in attempts for name in a.hyperparameters))))
    for knob, name in memory.knobs.items():
        if name not in known:
            yield Problem(
                ("memory", "knobs", knob),
                f"neither the job nor an attempt has a hyperparameter {name!r}",
                did_you_mean(
                    name, known, f"add hyperparameters.{name} with the value that the script takes, or remove this"
                ),
            )


def _names(job: Job) -> set[str]:
    """The names of all that the script is given, in any attempt and by its search, in lower case, with _ for -."""
    attempts = [] if job.attempts == "auto" else job.attempts
    searched = job.tuning.ranges if job.tuning else {}
    every: list[Iterable[str]] = [Given(job), searched, *(attempt.hyperparameters for attempt in attempts)]
    return {name for given in every for name in spelt(given)}


def _trains_as_told(job: Job) -> bool:
    """Whether the script may be told with which method it trains. `sagefit.memory.read` then asks the same."""
    return bool(_names(job) & set(NAMES_OF_METHODS))


def _shards_as_told(job: Job) -> bool:
    """Whether the script may be told how to shard, so that the memory block is not all there is to it."""
    return bool(_names(job) & set(_SHARDS)) or any(name.startswith("ACCELERATE_USE_") for name in job.environment)


def sharing_problems(
    sharding: Sharding,
    cpu_offload: Offload,
    stack: Stack,
    base_dtype: str,
    said: Mapping[str, Key] = MappingProxyType({}),
) -> Iterator[Problem]:
    """What cannot be shared among ranks, or be moved to the host, in this way.

    ``said`` are places beside the memory block that say one of these, by field.
    """
    if base_dtype == "8-bit" and sharding not in ("none", "zero1", "zero2"):
        shards, loads = said.get("sharding"), said.get("base_dtype")
        less = "set sharding: none, zero1 or zero2"
        if shards:
            less = f"give {dotted(shards)} stage 1 or 2" if sharding == "zero3" else f"leave {dotted(shards)} out"
        other = f"take load_in_4bit: true in place of {dotted(loads)}" if loads else "method: qlora"
        by = f" ({dotted(shards)})" if shards else ""
        yield Problem(
            loads or ("memory", "base_dtype"),
            f"what weights of 8 bits need when they are sharded is not known, and sharding is {sharding}{by}",
            f"{less}, or {other}",
        )
    if sharding.startswith("fsdp") and stack in WITHOUT_FSDP:
        yield Problem(
            ("memory", "sharding"),
            f"{sharding} is PyTorch's FSDP, and stack {stack} does not train with it",
            "set sharding: zero1, zero2 or zero3, or another stack",
        )
    if cpu_offload == "parameters" and sharding in ("none", "zero1", "zero2"):
        yield Problem(
            ("memory", "cpu_offload"),
            f"parameters go to the host only where they are sharded, and sharding is {sharding}",
            "set sharding: zero3 or fsdp, or cpu_offload: optimizer",
        )
    if cpu_offload == "optimizer" and sharding == "none" and stack not in _OFFLOADS_ALONE:
        yield Problem(
            ("memory", "cpu_offload"),
            "DeepSpeed and FSDP move optimizer state to the host only where it is sharded, and sharding is none",
            "set sharding: zero1, zero2, zero3 or fsdp",
        )


def _trace(job: Job, trace: Trace) -> Iterator[Problem]:
    file = trace.function.rpartition(":")[0]
    if job.code is None:
        yield Problem(("memory", "trace"), "a traced function is part of the code", "add code.source_dir")
        return
    folder = job.local(job.code.source_dir)
    if not (folder / file).resolve().is_relative_to(folder) or not (folder / file).is_file():
        yield Problem(
            ("memory", "trace", "function"),
            f"no file {file!r} in {job.code.source_dir!r}",
            "name a file inside code.source_dir and a function in it, such as train.py:build",
        )
