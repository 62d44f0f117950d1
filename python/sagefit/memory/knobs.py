"""Which hyperparameter of the script is which number of the planner.

Names are those of Hugging Face's ``TrainingArguments`` and of common scripts, in order of preference, then those of
single frameworks; upper case and hyphens make no difference. ``memory.knobs`` of a job names others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from sagefit.job import Job
from sagefit.job.entry_point import script_of
from sagefit.job.given import Given, arguments, calls_of_job, spelt
from sagefit.job.memory_model import Knob
from sagefit.job.names import plain
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
    hyperparameter of a usual name. One that an argument of the same name replaces is none, nor is one that the script
    takes without a value.
    """
    if job.memory is not None and knob in job.memory.knobs:
        return job.memory.knobs[knob]
    given = hyperparameters or job.hyperparameters
    if not isinstance(given, Given) and (own := _handed_on(job, knob, given)):
        return own
    found = names_in(job, knob, given)
    if knob == "micro_batch" and not found and not isinstance(given, Given):
        found = _batch_of_ultralytics(job, given)
    if isinstance(given, Given) or not found:
        return next(iter(found), None)
    unable = {plain(name) for name in arguments(job)[0]} | set(script_of(job).switches)
    return next((name for name in found if plain(name) not in unable), None)


def _handed_on(job: Job, knob: Knob, given: Mapping[str, object]) -> str | None:
    """The hyperparameter that the script hands on to a library as this number, whatever its own name for it."""
    said = calls_of_job(job, given) if given else {}
    if not said:
        return None
    names = {plain(name): name for name in given}
    for name in (*KNOBS[knob], *KNOBS_OF[knob]):
        told = said.get(name)
        if told is not None and told.direct and len(told.arguments) == 1:
            (argument,) = told.arguments
            if argument in names and names_in(job, knob, {name: None}):
                return names[argument]
    return None


def follows(job: Job, knob: Knob) -> bool:
    """Whether ``knob`` is set by another: Ultralytics accumulates gradients of small batches up to a nominal one."""
    return knob == "accumulation" and name_of(job, knob) is None and bool(_batch_of_ultralytics(job))


def _batch_of_ultralytics(job: Job, given: Mapping[str, object] | None = None) -> list[str]:
    """The name of Ultralytics' batch, where one GPU has all of it."""
    written = spelt(job.hyperparameters if given is None else given)
    if "batch" not in written or "device" in written or "yolo" not in kinds_of(job):
        return []
    return [written["batch"]]


def argument(job: Job, knob: Knob) -> str | None:
    """The argument that sets ``knob``, without its dashes; None where none does."""
    if job.memory is not None and knob in job.memory.knobs:
        return None
    given = arguments(job)[0]
    return next(iter(names_in(job, knob, given)), None) if given else None


def names_in(job: Job, knob: Knob, hyperparameters: Mapping[str, object]) -> list[str]:
    """Those of ``hyperparameters`` that are usual names of ``knob``, as they are spelt there, the preferred first."""
    written = hyperparameters.spelt if isinstance(hyperparameters, Given) else spelt(hyperparameters)
    more = [name for name in KNOBS_OF[knob] if name in written]
    if more:
        kinds = set(kinds_of(job))
        more = [name for name in more if not KNOBS_OF[knob][name].kinds or kinds & set(KNOBS_OF[knob][name].kinds)]
    found = [written[name] for name in (*(name for name in KNOBS[knob] if name in written), *more)]
    if isinstance(hyperparameters, Given):
        return sorted(found, key=hyperparameters.rank)
    return found


def is_read(job: Job, name: str) -> bool:
    """Whether a hyperparameter of this name may set a number of the planner."""
    kinds = set(kinds_of(job))
    told: dict[str, tuple[Kind, ...]] = {**{each: NAMES[each].kinds for each in TOLD}, **SIZES, **_TOGETHER}
    return bool(kinds & set(told.get(plain(name), ()))) or any(
        names_in(job, knob, {name: None}) for knob in get_args(Knob)
    )
