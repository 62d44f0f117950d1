"""What the names of single frameworks say: tables of `sagefit.job.script_names`, and what needs two names at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sagefit.catalog.instance_table import instances
from sagefit.job import Job
from sagefit.job.key import Key, dotted
from sagefit.job.memory_model import Memory
from sagefit.job.script_names import ATTENTION_LAYERS, DTYPES, NAMES, UNCOUNTED, Kind
from sagefit.memory.habits import NOMINAL_BATCH
from sagefit.memory.said import Said
from sagefit.memory.values import flag, text, whole

Find = Callable[[str], tuple[Key, object] | None]
"""A hyperparameter by its plain name: its place and value."""

_PROMPT = 512
"""Tokens that TRL's trainers leave a prompt when they are told the length of an answer only."""


class Dialects:
    """Reads names of frameworks among the hyperparameters that ``find`` finds; ``notes`` says what is not counted."""

    def __init__(self, memory: Memory, kinds: tuple[Kind, ...], find: Find, notes: list[str]) -> None:
        self._memory, self._kinds, self._find, self._notes = memory, set(kinds), find, notes

    def words(self, field: str) -> Iterator[Said]:
        """What names that are no knobs say of ``field``."""
        for name, known in NAMES.items():
            found = self._find(name) if known.field == field and self._kinds & set(known.kinds) else None
            if found is None:
                continue
            word = text(found[1])
            value = known.words.get(word) or (_layers(word) if field == "lora_targets" else None)
            if value is not None:
                yield Said(field, value, found[0], word or "empty")
                if (field, value, word) == ("method", "lora", "8"):
                    yield Said("base_dtype", "8-bit", found[0], word)
            elif word not in known.words:
                self._notes.append(f"{dotted(found[0])}, {word[:80]!r}, is not known to the planner and not considered")

    def dtype(self, method: str, *, also_precision: bool) -> Iterator[Said]:
        """In what the script loads a language model: ``torch_dtype``, or ``dtype`` in newer releases.

        In a training loop of one's own ``dtype`` is that of autocast. ``weights`` stands for what trains and is 16-bit
        throughout. ``also_precision`` where nothing else says it.
        """
        loaded = self._find("torch_dtype")
        found = (loaded or self._find("dtype")) if "language" in self._kinds else None
        if found is None:
            return
        place, words = found[0], text(found[1])
        kind = DTYPES.get(words)
        if kind in ("bf16", "fp16") and loaded is None and self._casts():
            if also_precision:
                yield Said("precision", f"{kind}-mixed", place, f"{words}, for autocast over fp32 weights")
            return
        if kind is None:
            self._notes.append(f"{dotted(place)}, {words[:80]!r}, is not known to the planner and not considered")
        elif kind == "bf16" and (method == "full" or self._memory.stack == "torchtune"):
            yield Said("weights", "bf16", place, words)
            return
        elif kind == "fp16" and method == "full":
            self._notes.append(f"{dotted(place)}, {words}, is not considered: training weights of fp16 is not planned")
        elif method == "lora" and self._memory.base_dtype != "8-bit":
            yield Said("base_dtype", "fp32" if kind == "fp32" else "16-bit", place, words)
        if kind in ("bf16", "fp16") and method != "full" and also_precision:
            yield Said("precision", f"{kind}-mixed", place, words)

    def _casts(self) -> bool:
        """Whether ``dtype`` is what a training loop computes in (nanoGPT), and not what a model is loaded in."""
        named = any(
            map(self._find, ("model_name_or_path", "model_name", "model_id", "base_model", "attn_implementation"))
        )
        return self._memory.stack in ("plain-torch", "unknown") and not named

    def length(self, objective: object) -> Iterator[Said]:
        """TRL's lengths of prompt and answer, which go through the model together."""
        if "language" not in self._kinds or self._memory.sequence_length is not None:
            return
        prompt, answer = self._find("max_prompt_length"), self._find("max_completion_length")
        if answer is None:
            return
        of_prompt, of_answer = whole(prompt[1]) if prompt else None, whole(answer[1])
        if not of_answer or of_answer < 0 or (prompt is None and objective not in ("grpo", "gkd")):
            return
        words = f"{of_answer}, after a prompt of {of_prompt or _PROMPT}{'' if of_prompt else ' by default'}"
        yield Said("sequence_length", of_answer + (of_prompt or _PROMPT), answer[0], words)

    def batch(self) -> Iterator[Said]:
        """Ultralytics' ``batch``, which is that of all GPUs of ``device`` together."""
        found = self._find("batch") if "yolo" in self._kinds else None
        if found is None:
            return
        total, device = whole(found[1]), self._find("device")
        gpus = len([part for part in text(device[1]).strip("[]").split(",") if part.strip()]) if device else 1
        if total is None or total < 1:
            words = "lets Ultralytics choose a batch by the GPU's memory; memory.micro_batch says a batch"
            self._notes.append(f"{dotted(found[0])}, {text(found[1])}, {words}")
        else:
            over = f"{total} over {gpus} GPUs" if gpus > 1 else f"{total} on one GPU"
            yield Said("micro_batch", max(1, total // max(1, gpus)), found[0], over)
            nominal = self._find("nbs")
            steps = round(((whole(nominal[1]) if nominal else None) or NOMINAL_BATCH) / total)
            if steps > 1:
                yield Said("accumulation", steps, found[0], f"{total}, of which Ultralytics takes {steps} a step")

    def uncounted(self) -> None:
        """Notes what costs memory that is not predicted."""
        for name, (kinds, what) in UNCOUNTED.items():
            found = self._find(name) if self._kinds & set(kinds) else None
            if found and flag(found[1]) is not False and text(found[1]) != "[]":
                self._notes.append(f"{dotted(found[0])} is not considered: {what}")


def _layers(word: str) -> str | None:
    """Which layers a list of names is: those of attention alone, or others too, which count as all linear ones."""
    names = {part.rpartition(".")[2] for part in re.split(r"[\s,;'\"\[\]]+", word) if part}
    if not names or any(not re.fullmatch(r"[a-z_][a-z0-9_]*", name) for name in names):
        return None
    return "attention" if names <= ATTENTION_LAYERS else "all-linear"


def batch_of_deepspeed(job: Job, place: Key, settings: Mapping[str, object], notes: list[str]) -> Iterator[Said]:
    """Batch and accumulation of a DeepSpeed configuration; "auto" is what the Trainer is told."""
    words = "a DeepSpeed configuration with "
    steps = whole(settings.get("gradient_accumulation_steps"))
    micro = whole(settings.get("train_micro_batch_size_per_gpu"))
    total = whole(settings.get("train_batch_size"))
    if micro and micro > 0:
        yield Said("micro_batch", micro, place, f"{words}train_micro_batch_size_per_gpu {micro}")
    gpus = _gpus(job) if total else None
    if total and gpus and not micro and total % (gpus * (steps or 1)) == 0:
        over = f"{words}train_batch_size {total}, over {gpus} GPUs and {steps or 1} steps"
        yield Said("micro_batch", total // (gpus * (steps or 1)), place, over)
    elif total and not micro:
        notes.append(
            f"{dotted(place)}: train_batch_size {total} is that of all GPUs and steps together, and not considered; "
            "memory.micro_batch says that of one GPU"
        )
    if steps and steps > 0:
        yield Said("accumulation", steps, place, f"{words}gradient_accumulation_steps {steps}")
    elif total and micro and gpus and total % (gpus * micro) == 0:
        over = f"{words}train_batch_size {total}, over {gpus} GPUs of {micro} each"
        yield Said("accumulation", total // (gpus * micro), place, over)


def _gpus(job: Job) -> int | None:
    """GPUs that train together, where the job file says it."""
    if job.memory and job.memory.world_size:
        return job.memory.world_size
    written = job.resources.instance_type
    known = instances().get(written) if isinstance(written, str) and job.attempts == "auto" else None
    return known.gpu_count * job.resources.instance_count or None if known else None
