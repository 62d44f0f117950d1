"""What an answer is worth for a job that says no batch, where its framework has no default that is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sagefit.job import Job
from sagefit.job.given import Given
from sagefit.job.problem import Problem
from sagefit.memory import Diffusion, Traced, Transformer, Vision, Workload, predict
from sagefit.memory.habits import default_batch
from sagefit.memory.kinds import kinds_of
from sagefit.memory.reader import Reader
from sagefit.memory.silent import is_said
from sagefit.memory.told import Told
from sagefit.planning.candidate import Candidate, judge
from sagefit.planning.job_plan import JobPlan

_MOST = 4096
_OF_STEPS = (Transformer, Vision, Diffusion, Traced)


def no_batch(plan: JobPlan) -> Iterator[Problem]:
    """A remark where the chosen instance holds a step of one sample, and nothing says how many there will be."""
    workload, chosen = plan.workload(), plan.chosen
    if chosen is None or not isinstance(workload.model, _OF_STEPS) or workload.micro_batch > 1:
        return
    if default_batch(workload.stack, kinds_of(plan.job)) is not None or _says_batch(plan.job):
        return
    most = _largest(workload, chosen)
    what = f"up to {most} (powers of two were tried) fit there" if most > 1 else "a batch of 2 is not sure to fit there"
    message = f"no batch is given, so {chosen.verdict} on {chosen.instance_type} is the answer for a batch of 1; {what}"
    knob = "give memory.micro_batch, or name the hyperparameter that sets it in memory.knobs.micro_batch"
    yield Problem(("memory",), message, knob, alone=True)


def _says_batch(job: Job) -> bool:
    """Whether the job, one of its attempts or its search says a batch."""
    if job.memory is None:
        return True
    ranges = dict.fromkeys(job.tuning.ranges) if job.tuning else {}
    written = job.written_attempts or []
    every = [{**job.hyperparameters, **ranges, **attempt.hyperparameters} for attempt in written]
    for given in every or [{**job.hyperparameters, **ranges}]:
        told = Given(job, given)
        if is_said(Reader(job, job.memory, told), Told(job, job.memory, told), "micro_batch"):
            return True
    return False


def _largest(workload: Workload, chosen: Candidate) -> int:
    """The largest power of two of samples, up to 4096, that fits on the instance by its upper bound."""
    most = 1
    while most < _MOST and _fits(replace(workload, micro_batch=2 * most), chosen):
        most *= 2
    return most


def _fits(workload: Workload, chosen: Candidate) -> bool:
    prediction = predict(workload, chosen.placement)
    found, _ = judge(prediction, chosen.usable_host_gib, chosen.usable_gpu_gib, chosen.head_room, "")
    return found == "FITS"
