"""What names of a job speak of and nothing says: a method or an objective that is then not planned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from sagefit.job.key import Key
from sagefit.job.problem import Problem
from sagefit.memory.reader import Reader
from sagefit.memory.silent import is_said
from sagefit.memory.told import OBJECTIVES, Told
from sagefit.memory.values import flag

_METHODS = {"lora": "lora", "dora": "lora", "qlora": "qlora"}
_TOO_SHORT = ("sft", "pt", "rm")
"""Words for objectives that say nothing else than what is taken, or that a path may have for another reason."""
_OF_SAMPLES = ("num_generations", "max_completion_length", "use_vllm")
_OF_PREFERENCES = ("max_prompt_length", "beta", "precompute_ref_log_probs")


def doubts(reader: Reader, told: Told) -> Iterator[Problem]:
    """A remark for a method, and one for an objective, that the job's names speak of and nothing says."""
    kinds = set(told.kinds)
    if kinds & {"language", "diffusion"} and not is_said(reader, told, "method"):
        yield from _spoken(reader, "method", _METHODS, "full")
    if "language" in kinds and not is_said(reader, told, "objective"):
        words: dict[str, str] = {word: objective for word, objective in OBJECTIVES.items() if word not in _TOO_SHORT}
        yield from list(_spoken(reader, "objective", words, "supervised")) or _of_others(told)


def _spoken(reader: Reader, field: str, words: dict[str, str], taken: str) -> Iterator[Problem]:
    for place, name in _paths(reader):
        word = next((part for part in re.split(r"[^a-z0-9]+", name.lower()) if part in words), None)
        if word:
            message = f"{name!r} speaks of {word}, and nothing says that {field} is {words[word]}: taken is {taken}"
            knob = f"give memory.{field}: {words[word]}, or memory.{field}: {taken} if that is right"
            yield Problem(place, message, knob)
            return


def _paths(reader: Reader) -> Iterator[tuple[Key, str]]:
    code = reader.job.code
    if code is not None:
        yield ("code", "entry_point"), code.entry_point
        yield ("code", "source_dir"), PurePosixPath(code.source_dir).name


def _of_others(told: Told) -> Iterator[Problem]:
    """Hyperparameters that only another objective has; the first of them."""
    for names, others in ((_OF_SAMPLES, "grpo"), (_OF_PREFERENCES, "dpo")):
        for name in names:
            found = told.hyperparameter(name)
            if found is not None and flag(found[1]) is not False:
                message = f"is of training such as {others}, and nothing says memory.objective"
                knob = f"give memory.objective: {others}, or what it is, or memory.objective: supervised"
                yield Problem(found[0], f"{message}: taken is supervised", knob, alone=True)
                return
