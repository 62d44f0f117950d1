"""What a script is told besides numbers: how it shards, with which kernels it computes, what it loads in 4 bits.

Read are Hugging Face's ``TrainingArguments`` (``fsdp``, ``fsdp_config``, ``deepspeed``, ``use_liger_kernel``), a
DeepSpeed configuration, Accelerate's configuration file and environment, and arguments that scripts commonly have
(``load_in_4bit``, ``use_peft``). `sagefit.memory.dialects` has the names of single frameworks. What is seen and not
understood is noted. Sources: the documentation of transformers 5, accelerate 1 (``accelerate.utils.launch``) and
DeepSpeed 0.18.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from sagefit.job import Job
from sagefit.job.given import Given, in_code, is_of_file
from sagefit.job.key import Key, dotted
from sagefit.job.memory_model import Memory, Objective
from sagefit.job.memory_rules import ACCELERATE
from sagefit.job.names import plain
from sagefit.job.problem import Problem
from sagefit.job.script_names import SWIFT_CONFIGURATIONS
from sagefit.memory.deepspeed import Zero, not_considered, offloaded, zero_of
from sagefit.memory.dialects import Dialects, batch_of_deepspeed
from sagefit.memory.habits import loads_in_16_bits
from sagefit.memory.kinds import kinds_of
from sagefit.memory.knobs import name_of
from sagefit.memory.said import Said
from sagefit.memory.stacks import PROFILES
from sagefit.memory.values import flag, share, text, whole

# Words of ms-swift, LLaMA-Factory and axolotl. SimPO is a loss of TRL's CPO, IPO one of its DPO.
OBJECTIVES: dict[str, Objective] = {
    **dict.fromkeys(("sft", "pt"), "supervised"),
    **dict.fromkeys(("cpo", "simpo"), "cpo"),
    **dict.fromkeys(("rm", "reward"), "reward"),
    **dict.fromkeys(("dpo", "ipo"), "dpo"),
    "orpo": "orpo",
    "kto": "kto",
    "grpo": "grpo",
    "gkd": "gkd",
}
# Losses of sentence-transformers, by class and as they are spelt in short.
_LOSSES: dict[str, Objective] = {
    **dict.fromkeys(("multiplenegativesrankingloss", "mnrl", "infonce", "contrastive"), "contrastive"),
    **dict.fromkeys(("contrastiveloss", "onlinecontrastiveloss", "cosinesimilarityloss", "cosentloss"), "contrastive"),
    **dict.fromkeys(("tripletloss", "triplet", "triplet_loss"), "triplet"),
}
# MIGRATION.md of TRL 1: "server" before, "colocate" from then on. Taken is what needs more.
_NO_MODE = (
    "true without vllm_mode: TRL 1 then runs vLLM inside of the trainer (colocate), and older releases on a server "
    "(vllm_mode: server, or memory.sampler: elsewhere)"
)
_OF_OBJECTIVES = ("rlhf_type", "rl", "stage")
_LIGER = ("use_liger_kernel", "use_liger", "enable_liger_kernel", "liger_fused_linear_cross_entropy")
# FSDP's ShardingStrategy, by name and by number, as words of TrainingArguments and of Accelerate.
_STRATEGIES = {
    **dict.fromkeys(("full_shard", "1", "true"), "fsdp"),
    **dict.fromkeys(("shard_grad_op", "2"), "fsdp-shard-grad-op"),
    **dict.fromkeys(("no_shard", "3", "false", ""), "none"),
    **dict.fromkeys(("hybrid_shard", "4"), "fsdp-hybrid-shard"),
    **dict.fromkeys(("hybrid_shard_zero2", "_hybrid_shard_zero2", "5"), "fsdp-hybrid-shard"),
}


class Told:
    """Reads what the script is told, compares it with the memory block, and collects notes and problems."""

    def __init__(self, job: Job, memory: Memory, given: Given) -> None:
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.saves_shards = False
        self.wrapped = True
        self.zero = Zero()
        self.processes: tuple[Key, int] | None = None
        self._job, self._memory = job, memory
        self._spelt = given.spelt
        self._hyperparameters = given
        self._said: dict[str, Said] = {}
        self.kinds = kinds_of(job)
        self.seen: set[str] = set()
        """Names that were looked for and found, as the job spells them."""
        self._dialects = Dialects(memory, self.kinds, self.hyperparameter, self.notes)
        for said in self._all():
            self._said.setdefault(said.field, said)

    def says(self, field: str) -> bool:
        """Whether another place than the memory block says what ``field`` is."""
        return field in self._said

    def place(self, field: str) -> Key | None:
        """Where another place than the memory block says what ``field`` is; None where none does."""
        return self._said[field].place if field in self._said else None

    def value(self, field: str) -> object:
        """What another place than the memory block says of ``field``; None where none does."""
        return self._said[field].value if field in self._said else None

    def get(self, field: str) -> Any:
        """The value of ``field``: that of the memory block, or what the script is told where the block says nothing."""
        written, said = getattr(self._memory, field), self._said.get(field)
        if said is None or said.value == written:
            return written
        where = self._where(said)
        if (written, said.value) == ("bf16", "bf16-mixed"):
            return written  # weights that are 16-bit throughout are trained with or without autocast
        if field not in self._memory.model_fields_set:
            self.notes.append(f"{dotted(said.place)} is {said.words}, so {field} is taken as {text(said.value)}")
            return said.value
        if (written, said.value) in self._alike():
            return said.value
        if is_of_file(said.place):
            self.notes.append(f"{dotted(said.place)} is {said.words}; memory.{field}, {text(written)}, counts")
            return written
        self.problems.append(
            Problem(
                ("memory", field),
                f"is {text(written)}, and {where} is {said.words}, which is {text(said.value)}",
                f"set {field}: {text(said.value)}, or correct the other",
            )
        )
        return written

    def _alike(self) -> tuple[tuple[object, object], ...]:
        """Pairs of what is written and what is said that do not contradict: the second says it more exactly."""
        pairs: list[tuple[object, object]] = [("hf-trainer", "hf-liger"), ("full", True), ("selective", True)]
        if PROFILES.get(self._memory.stack) and PROFILES[self._memory.stack].fsdp:
            pairs += [("zero3", kind) for kind in ("fsdp", "fsdp-hybrid-shard")] + [("zero2", "fsdp-shard-grad-op")]
        return tuple(pairs)

    def _where(self, said: Said) -> str:
        line = self._job.line_exactly(said.place)
        return dotted(said.place) + (f" (line {line})" if line else "")

    def _all(self) -> Iterator[Said]:
        yield from self._arguments()
        yield from self._environment()
        for name in ACCELERATE:
            if found := self.hyperparameter(name):
                yield from self._accelerate_file(*found)
        yield from self._method()
        yield from self._objective()
        yield from self._dialects.words("lora_targets")
        yield from self._eight_bit_optimizer()
        method = self._said["method"].value if "method" in self._said else self._memory.method
        silent = name_of(self._job, "precision", self._hyperparameters) is None and "precision" not in self._said
        yield from self._dialects.dtype(str(method), also_precision=silent)
        if method == "lora" and "language" in self.kinds and "base_dtype" not in self._memory.model_fields_set:
            yield from filter(None, [loads_in_16_bits(self.hyperparameter)])
        yield from self._dialects.length(self._objective_now())
        yield from self._dialects.batch()
        self._dialects.uncounted()
        for name in ("freeze_vit", "freeze_vision_tower"):
            found = self.hyperparameter(name)
            if found and flag(found[1]) is not None:
                yield Said("vision_tower", "frozen" if flag(found[1]) else "trained", found[0], text(found[1]))
        yield from self._kernels()

    def hyperparameter(self, name: str) -> tuple[Key, object] | None:
        """The place and value of the hyperparameter of this name, in lower case and with _ for -."""
        if name not in self._spelt:
            return None
        name = self._spelt[name]
        self.seen.add(name)
        return self._hyperparameters.place(name) or ("hyperparameters", name), self._hyperparameters[name]

    def checkpoints_by_default(self) -> str:
        """Why activations are checkpointed although nothing asks for it; empty where they are not."""
        if self._memory.stack == "ms-swift":
            return "ms-swift checkpoints activations unless gradient_checkpointing is false"
        found, off = self.hyperparameter("finetuning_type"), self.hyperparameter("disable_gradient_checkpointing")
        if found is None or (off is not None and flag(off[1])):
            return ""
        why = "LLaMA-Factory's, which checkpoints activations unless disable_gradient_checkpointing is true"
        return f"{dotted(found[0])} is {why}"

    # Sharding

    def _arguments(self) -> Iterator[Said]:
        if found := self.hyperparameter("fsdp"):
            yield from self._fsdp(*found)
        for name in ("deepspeed", "deepspeed_config"):
            if found := self.hyperparameter(name):
                yield from self._deepspeed(*found)

    def _fsdp(self, place: Key, raw: object) -> Iterator[Said]:
        words = text(raw)
        sharding, offload = "none", "none"
        for word in words.replace(",", " ").strip("[]").replace("'", "").replace('"', "").split():
            if word in _STRATEGIES:
                sharding = _STRATEGIES[word]
            elif word == "offload":
                offload = "parameters"
            elif word != "auto_wrap":
                self.notes.append(f"{dotted(place)}: {word!r} is not known to the planner and not considered")
        config = self.hyperparameter("fsdp_config")
        settings = self._file(*config, kind="fsdp_config") if config else {}
        yield Said("sharding", _resharded(sharding, settings), place, words or "empty")
        self._wrapping(config[0] if config else place, settings)
        if sharding != "none" and text(raw) != "true" and "auto_wrap" not in words:
            self.notes.append(
                f"{dotted(place)} has no auto_wrap, with which FSDP shards layer by layer, as it is taken here; "
                "without it, a rank gathers the whole model"
            )
        if offload != "none":
            yield Said("cpu_offload", offload, place, words)
        if config and _first(settings, "activation_checkpointing"):
            yield Said("gradient_checkpointing", True, config[0], "a configuration with activation_checkpointing")

    def _wrapping(self, place: Key, settings: Mapping[str, object]) -> None:
        """What FSDP shards as one: a layer, or with NO_WRAP the model."""
        policy = text(_setting(settings, "auto_wrap_policy") or settings.get("FSDP_AUTO_WRAP_POLICY"))
        if policy == "no_wrap":
            self.wrapped = False
            self.notes.append(f"{dotted(place)}: with NO_WRAP the model is sharded as one, so a rank gathers all of it")
        elif policy == "size_based_wrap" or (whole(_setting(settings, "min_num_params")) or 0) > 0:
            self.notes.append(f"{dotted(place)}: what is sharded as one goes by size, and is taken as a layer")

    def _deepspeed(self, place: Key, raw: object) -> Iterator[Said]:
        if (named := SWIFT_CONFIGURATIONS.get(text(raw))) and self._content(str(raw).strip()) is None:
            yield from self._zero(place, {"zero_optimization": named})
            return
        settings = self._file(place, raw, kind="DeepSpeed configuration")
        if settings:
            yield from self._zero(place, settings)
            yield from batch_of_deepspeed(self._job, place, settings, self.notes)

    def _zero(self, place: Key, settings: Mapping[str, object]) -> Iterator[Said]:
        zero = settings.get("zero_optimization")
        zero = zero if isinstance(zero, dict) else {"stage": 1} if zero is True else {}
        stage = whole(zero.get("stage", 0))
        if stage not in (0, 1, 2, 3):
            self.notes.append(f"{dotted(place)}: stage {zero.get('stage')!r} of ZeRO is not known and not considered")
            return
        words = f"a DeepSpeed configuration with stage {stage}"
        for kind in ("bf16", "fp16"):
            given = settings.get(kind)
            if isinstance(given, dict) and flag(given.get("enabled", "")):
                yield Said("precision", f"{kind}-mixed", place, f"a DeepSpeed configuration with {kind}")
        yield Said("sharding", f"zero{stage}" if stage else "none", place, words)
        if stage:
            self.zero = zero_of(zero)
        self.notes += [f"{dotted(place)}: {what}, which is not considered" for what in not_considered(settings)]
        away = offloaded(zero)
        if away:
            yield Said("cpu_offload", "parameters" if "param" in away else "optimizer", place, words)
        if self._memory.stack != "unknown" and PROFILES[self._memory.stack].fsdp:
            yield Said("stack", "deepspeed", place, words)

    def _environment(self) -> Iterator[Said]:
        """Accelerate's launcher hands its settings on in the environment, and reads them there."""
        settings = {name: value for name, value in self._job.environment.items() if not isinstance(value, Mapping)}
        if flag(settings.get("ACCELERATE_USE_FSDP", "")):
            name = "FSDP_SHARDING_STRATEGY" if "FSDP_SHARDING_STRATEGY" in settings else "ACCELERATE_USE_FSDP"
            place = ("environment", name)
            word = text(settings.get(name))
            sharding = _STRATEGIES.get(word, "fsdp")
            reshard = {"reshard_after_forward": settings.get("FSDP_RESHARD_AFTER_FORWARD", "true")}
            yield Said("sharding", _resharded(sharding, reshard), place, word)
            self._wrapping(place, settings)
            self.saves_shards |= text(settings.get("FSDP_STATE_DICT_TYPE")) == "sharded_state_dict"
            if flag(settings.get("FSDP_OFFLOAD_PARAMS", "")):
                yield Said("cpu_offload", "parameters", ("environment", "FSDP_OFFLOAD_PARAMS"), "true")
            if flag(settings.get("FSDP_ACTIVATION_CHECKPOINTING", "")):
                yield Said("gradient_checkpointing", True, ("environment", "FSDP_ACTIVATION_CHECKPOINTING"), "true")
        if flag(settings.get("ACCELERATE_USE_DEEPSPEED", "")):
            names = ("ACCELERATE_DEEPSPEED_CONFIG_FILE", "ACCELERATE_DEEPSPEED_ZERO_STAGE", "ACCELERATE_USE_DEEPSPEED")
            name = next(name for name in names if name in settings)
            if name == names[0]:
                yield from self._deepspeed(("environment", name), settings[name])
            else:
                given = {
                    "zero_stage": settings.get(names[1], 2),
                    "offload_param_device": settings.get("ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE", "none"),
                    "offload_optimizer_device": settings.get("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "none"),
                }
                yield from self._zero(("environment", name), _zero_of(given))
        yield from _mixed(("environment", "ACCELERATE_MIXED_PRECISION"), settings.get("ACCELERATE_MIXED_PRECISION"))

    def _accelerate_file(self, place: Key, raw: object) -> Iterator[Said]:
        settings = self._file(place, raw, kind="Accelerate configuration")
        kind = text(settings.get("distributed_type", ""))
        if (processes := whole(settings.get("num_processes"))) and processes > 0:
            self.processes = place, processes
        yield from _mixed(place, settings.get("mixed_precision"))
        words = f"an Accelerate configuration with distributed_type {kind.upper()}"
        if kind == "fsdp":
            fsdp = settings.get("fsdp_config")
            fsdp = fsdp if isinstance(fsdp, dict) else {}
            sharding = _STRATEGIES.get(text(fsdp.get("fsdp_sharding_strategy", "full_shard")), "fsdp")
            yield Said("sharding", _resharded(sharding, fsdp), place, words)
            self._wrapping(place, fsdp)
            self.saves_shards |= text(_setting(fsdp, "state_dict_type")) == "sharded_state_dict"
            if _first(fsdp, "offload_params"):
                yield Said("cpu_offload", "parameters", place, words)
            if _first(fsdp, "activation_checkpointing"):
                yield Said("gradient_checkpointing", True, place, words)
        elif kind == "deepspeed":
            given = settings.get("deepspeed_config")
            given = given if isinstance(given, dict) else {}
            if "deepspeed_config_file" in given:
                yield from self._deepspeed(place, given["deepspeed_config_file"])
                return
            yield from self._zero(place, _zero_of(given))
        elif settings and kind not in ("", "no", "multi_gpu", "multi_cpu"):
            self.notes.append(f"{dotted(place)}: distributed_type {kind!r} is not known to the planner")

    # Method and kernels

    def _method(self) -> Iterator[Said]:
        named = list(self._dialects.words("method"))
        yield from (said for said in named if said.value == "qlora" or said.field == "base_dtype" or said.words == "8")
        four, eight = self.hyperparameter("load_in_4bit"), self.hyperparameter("load_in_8bit")
        if four and flag(four[1]):
            yield Said("method", "qlora", four[0], text(four[1]))
        if eight and flag(eight[1]):
            yield Said("method", "lora", eight[0], text(eight[1]))  # such weights are never trained
            yield Said("base_dtype", "8-bit", eight[0], text(eight[1]))
        peft = self.hyperparameter("use_peft") or self.hyperparameter("use_lora")
        if peft and flag(peft[1]) and self._memory.method != "qlora":
            yield Said("method", "lora", peft[0], text(peft[1]))
        if self._memory.method != "qlora":
            yield from (said for said in named if said.field == "method")
        knob = name_of(self._job, "lora_rank", self._hyperparameters)
        rank = self.hyperparameter(plain(knob)) if knob else None
        off = peft is not None and flag(peft[1]) is False
        if rank and whole(rank[1]) and not off and "method" not in self._memory.model_fields_set:
            yield Said("method", "lora", rank[0], text(rank[1]))

    def _eight_bit_optimizer(self) -> Iterator[Said]:
        """diffusers' ``use_8bit_adam``, where no other name says which optimizer."""
        found = self.hyperparameter("use_8bit_adam")
        written = self._memory.optimizer
        if found and flag(found[1]) and written != "paged-adamw-8bit":
            yield Said("optimizer", "adamw-8bit", found[0], text(found[1]))

    def _objective(self) -> Iterator[Said]:
        """ms-swift's ``rlhf_type``, LLaMA-Factory's ``stage``, axolotl's ``rl``, TRL's of references and vLLM."""
        loss, stage = self.hyperparameter("pref_loss"), self.hyperparameter("stage")
        if loss and stage and text(stage[1]) == "dpo" and text(loss[1]) in ("orpo", "simpo"):  # without a reference
            yield Said("objective", OBJECTIVES[text(loss[1])], loss[0], text(loss[1]))
        for name in _OF_OBJECTIVES:
            found = self.hyperparameter(name)
            if found and text(found[1]) in OBJECTIVES:
                yield Said("objective", OBJECTIVES[text(found[1])], found[0], text(found[1]))
            elif found and (
                name == "rlhf_type" or (name == "rl" and flag(found[1]) is None) or text(found[1]) == "ppo"
            ):
                self.notes.append(f"{dotted(found[0])}: what {text(found[1])[:40]!r} needs is not known to the planner")
        for name in ("loss", "loss_function", "loss_type"):
            found = self.hyperparameter(name)
            if found and "language" in self.kinds and text(found[1]) in _LOSSES:
                yield Said("objective", _LOSSES[text(found[1])], found[0], text(found[1]))
        before, beta = self.hyperparameter("precompute_ref_log_probs"), self.hyperparameter("beta")
        if before and flag(before[1]):
            yield Said("reference_model", False, before[0], text(before[1]))
        if beta and text(beta[1]) in ("0", "0.0") and self._objective_now() == "grpo":
            yield Said("reference_model", False, beta[0], text(beta[1]))
        used = self.hyperparameter("use_vllm")
        if used and flag(used[1]):
            mode, sleeps = self.hyperparameter("vllm_mode"), self.hyperparameter("vllm_enable_sleep_mode")
            asleep = self.hyperparameter("sleep_level")
            sleeping = (sleeps and flag(sleeps[1])) or (asleep and whole(asleep[1]))
            inside = mode is None or text(mode[1]) == "colocate"
            sampler = ("vllm-sleeping" if sleeping else "vllm") if inside else "elsewhere"
            words = text(mode[1]) if mode else _NO_MODE
            yield Said("sampler", sampler, (mode or used)[0], words)
            of_gpu = self.hyperparameter("vllm_gpu_memory_utilization")
            if of_gpu and inside and share(of_gpu[1]):
                yield Said("sampler_share", share(of_gpu[1]), of_gpu[0], text(of_gpu[1]))
        for name in ("teacher_model", "teacher_model_name_or_path"):
            if found := self.hyperparameter(name):
                yield Said("teacher_model", str(found[1]), found[0], text(found[1]))

    def _objective_now(self) -> str:
        said = self.hyperparameter("rlhf_type") or self.hyperparameter("rl")
        return OBJECTIVES.get(text(said[1]), "") if said else self._memory.objective

    def _kernels(self) -> Iterator[Said]:
        found = next(filter(None, map(self.hyperparameter, _LIGER)), None)
        stack = self._memory.stack
        if found and flag(found[1]) and stack in ("hf-trainer", "hf-liger", "unknown"):
            yield Said("stack", "hf-liger", found[0], text(found[1]))
        elif found and flag(found[1]):
            self.notes.append(f"{dotted(found[0])} is not considered: the planner does not know {stack} with Liger")
        elif found and flag(found[1]) is False and stack == "hf-liger":
            yield Said("stack", "hf-trainer", found[0], text(found[1]))
        elif (
            not found and stack == "unknown" and "language" in self.kinds and (trainer := self._hyperparameters.trainer)
        ):
            yield Said("stack", "hf-trainer", trainer[0], "Hugging Face's")
        compiled = self.hyperparameter("torch_compile")
        if compiled and flag(compiled[1]):
            self.notes.append(f"{dotted(compiled[0])} is not considered: what compiled code keeps is not known")

    def _file(self, place: Key, raw: object, *, kind: str) -> dict[str, object]:
        """The mapping that ``raw`` is, as JSON, or that the file of this name in the code holds."""
        if isinstance(raw, Mapping):
            return dict(raw)
        written = str(raw).strip()
        content = written if written.startswith("{") else self._content(written)
        if content is None:
            if written and flag(written) is None:
                self.notes.append(f"{dotted(place)}: no file {written!r} in code.source_dir, so it is not considered")
            return {}
        try:
            parsed = yaml.safe_load(content) if written.endswith((".yaml", ".yml")) else json.loads(content)
        except (ValueError, RecursionError, yaml.YAMLError):
            parsed = None
        if not isinstance(parsed, dict):
            self.notes.append(f"{dotted(place)}: {written[:80]!r} is no {kind}, so it is not considered")
            return {}
        return parsed

    def _content(self, name: str) -> str | None:
        path = in_code(self._job, name)
        return path.read_text(encoding="utf-8", errors="replace") if path else None


def _resharded(sharding: str, settings: Mapping[str, object]) -> str:
    """``sharding`` with what ``reshard_after_forward`` says: a switch, or for FSDP1 the name of a strategy."""
    given = _setting(settings, "reshard_after_forward")
    if sharding == "fsdp" and given is not None:
        return {"false": "fsdp-shard-grad-op"}.get(text(given)) or _STRATEGIES.get(text(given), sharding)
    return sharding


def _zero_of(given: Mapping[str, object]) -> dict[str, object]:
    """Accelerate's settings of DeepSpeed as a configuration of DeepSpeed."""
    offload = {
        f"offload_{name}": {"device": given.get(f"offload_{name}_device", "none")} for name in ("param", "optimizer")
    }
    return {"zero_optimization": {"stage": given.get("zero_stage", 2), **offload}}


def _mixed(place: Key, given: object) -> Iterator[Said]:
    """Accelerate's ``mixed_precision``."""
    if text(given) in ("bf16", "fp16"):
        yield Said("precision", f"{text(given)}-mixed", place, f"mixed_precision {text(given)}")


def _first(settings: Mapping[str, object], name: str) -> bool | None:
    """A switch of FSDP; None where it is none."""
    given = _setting(settings, name)
    return None if given is None else flag(given)


def _setting(settings: Mapping[str, object], name: str) -> object:
    """A setting of FSDP, which Accelerate and older releases write with a prefix."""
    return settings.get(name, settings.get(f"fsdp_{name}"))
