"""Which hyperparameter of the script is which number of the planner.

Names are those of Hugging Face's ``TrainingArguments`` and of common scripts, in order of preference, then those of
single frameworks; upper case and hyphens make no difference. ``memory.knobs`` of a job names others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import get_args

from sagefit.job import Job
from sagefit.job.memory_model import Knob
from sagefit.job.other_names import KNOBS
from sagefit.job.script_names import KNOBS_OF, NAMES, SIZES, TOLD, Kind
from sagefit.memory.kinds import kinds_of

# What only counts together with others, or where others are silent.
_TOGETHER: dict[str, tuple[Kind, ...]] = {
    "batch": ("yolo",),
    "use_8bit_adam": ("language", "vision", "diffusion"),
    "max_completion_length": ("language",),
}


def name_of(job: Job, knob: Knob, hyperparameters: Mapping[str, object] | None = None) -> str | None:
    """The hyperparameter that sets ``knob``, as the job spells it; None when the script has no such knob.

    A script has a knob when ``memory.knobs`` names it, or when the job (or ``hyperparameters``, an attempt's) sets a
    hyperparameter of a usual name.
    """
    if job.memory is not None and knob in job.memory.knobs:
        return job.memory.knobs[knob]
    return next(iter(names_in(job, knob, hyperparameters or job.hyperparameters)), None)


def names_in(job: Job, knob: Knob, hyperparameters: Mapping[str, object]) -> list[str]:
    """Those of ``hyperparameters`` that are usual names of ``knob``, as they are spelt there, the preferred first."""
    spelt = {plain(name): name for name in hyperparameters}
    more = [name for name in KNOBS_OF[knob] if name in spelt]
    if more:
        kinds = set(kinds_of(job))
        more = [name for name in more if not KNOBS_OF[knob][name].kinds or kinds & set(KNOBS_OF[knob][name].kinds)]
    return [spelt[name] for name in (*(name for name in KNOBS[knob] if name in spelt), *more)]


def is_read(job: Job, name: str) -> bool:
    """Whether a hyperparameter of this name may set a number of the planner."""
    kinds = set(kinds_of(job))
    told: dict[str, tuple[Kind, ...]] = {**{each: NAMES[each].kinds for each in TOLD}, **SIZES, **_TOGETHER}
    return bool(kinds & set(told.get(plain(name), ()))) or any(
        names_in(job, knob, {name: None}) for knob in get_args(Knob)
    )


@lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """``name`` in lower case, with _ for -."""
    return name.lower().replace("-", "_")
