"""Which hyperparameter of the script is which number of the planner.

Names are those of Hugging Face's ``TrainingArguments`` and of common scripts, in order of preference; upper case
and hyphens make no difference. ``memory.knobs`` of a job names others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sagefit.job import Job
from sagefit.job.memory_model import Knob
from sagefit.job.other_names import KNOBS


def name_of(job: Job, knob: Knob, hyperparameters: Mapping[str, object] | None = None) -> str | None:
    """The hyperparameter that sets ``knob``, as the job spells it; None when the script has no such knob.

    A script has a knob when ``memory.knobs`` names it, or when the job (or ``hyperparameters``, an attempt's) sets a
    hyperparameter of a usual name.
    """
    if job.memory is not None and knob in job.memory.knobs:
        return job.memory.knobs[knob]
    return next(iter(names_in(knob, hyperparameters or job.hyperparameters)), None)


def names_in(knob: Knob, hyperparameters: Mapping[str, object]) -> list[str]:
    """Those of ``hyperparameters`` that are usual names of ``knob``, as they are spelt there, the preferred first."""
    spelt = {_plain(name): name for name in hyperparameters}
    return [spelt[name] for name in KNOBS[knob] if name in spelt]


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
