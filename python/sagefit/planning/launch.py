"""How many hosts and processes a plan counts, where that is not what the job file or the launcher makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sagefit.job import Job
from sagefit.job.given import Given
from sagefit.job.key import Key
from sagefit.job.problem import Problem
from sagefit.memory.told import Told
from sagefit.memory.values import text, whole
from sagefit.planning.advice import nearest
from sagefit.planning.candidate import Candidate
from sagefit.planning.planned import PlannedAttempt

_SWITCH = "SAGEFIT_TORCHRUN"
_SETTING = "sagemaker_torch_distributed_enabled"
"""A hyperparameter of SageMaker's toolkit, which the launcher takes for the same as `_SWITCH`."""


@dataclass(frozen=True)
class _Place:
    """Where an attempt runs, or would run: what to call it, its hosts and their GPUs, and what the script is told."""

    label: str
    fit: Candidate
    hyperparameters: Mapping[str, object]
    environment: Mapping[str, object]


def launch_remarks(
    job: Job, attempts: Sequence[PlannedAttempt], candidates: Sequence[Candidate] = ()
) -> Iterator[Problem]:
    """What to look at again in the attempts that were planned: processes of a host, and the number of hosts.

    Where there are none, because nothing fits, the nearest of ``candidates`` counts.
    """
    places = [_Place(each.label, each.fit, each.hyperparameters, each.environment) for each in attempts if each.fit]
    if not attempts and (near := nearest(candidates)):
        places = [_Place(f"the closest, {near.instance_type},", near, {}, {})]
    yield from _started_once(job, places)
    yield from _other_processes(job, places)
    yield from _grown(job, attempts)


def _started_once(job: Job, places: Sequence[_Place]) -> Iterator[Problem]:
    """Where the prediction counts a process for each GPU, and the launcher starts the script once.

    On one host it starts torchrun only where it is asked to, see docs/distributed.md. Nobody knows before a run whether
    a script starts more processes by itself, so this is no error.
    """
    if job.code is None or not job.code.entry_point.endswith(".py") or (job.memory and job.memory.world_size):
        return
    for place in places:
        asked = {**job.environment, **place.environment, **job.hyperparameters, **place.hyperparameters}
        gpus = place.fit.instance.gpu_count if place.fit.prediction else 0
        if gpus > 1 and place.fit.instance_count == 1 and not {_SWITCH, _SETTING} & asked.keys():
            message = (
                f"{place.label} has {gpus} GPUs on one host, where the launcher starts the script once, and the "
                f"prediction counts {gpus} processes"
            )
            knob = (
                f'add {_SWITCH}: "true", or leave it if the script starts them itself; memory.world_size: 1 counts one'
            )
            yield Problem(("environment",), message, knob)
            return


def _other_processes(job: Job, places: Sequence[_Place]) -> Iterator[Problem]:
    """Where the script is told another number of GPUs than the first place has."""
    if job.memory is None or not places or not places[0].fit.placement.gpus:
        return
    fit, given = places[0].fit, {**job.hyperparameters, **places[0].hyperparameters}
    told = Told(job, job.memory, Given(job, given))
    for at, number, of_host in _processes(told):
        there = fit.placement.gpus_per_host if of_host else fit.placement.gpus
        counted = job.memory.world_size or fit.placement.gpus
        meant = number * fit.placement.hosts if of_host else number
        many = f"{fit.instance_count} x " if not of_host and fit.instance_count > 1 else ""
        where = f"{many}{fit.instance_type}"
        if number > there:
            message = f"asks for {number} GPUs, and {where} has {there}"
            knob = f"lower it to {there}, or name resources.instance_type: one with {number} GPUs"
            yield Problem(at, message, knob, alone=True)
        elif meant != counted:
            message = f"asks for {number} of {there} GPUs of {where}, and the prediction counts {counted}"
            yield Problem(at, message, f"give memory.world_size: {meant}, or raise it to {there}", alone=True)


def _processes(told: Told) -> Iterator[tuple[Key, int, bool]]:
    """Places that say how many GPUs train, the number, and whether it is that of one host.

    These are Ultralytics' ``device``, a list of ids; Lightning's ``devices``, a number or a list of ids; torchrun's
    ``nproc_per_node``; Accelerate's ``num_processes``, of all hosts, also in its configuration.
    """
    for name in ("device", "devices", "nproc_per_node", "num_processes"):
        found = told.hyperparameter(name)
        if found is None or (name == "device" and "yolo" not in told.kinds):
            continue
        ids = [part.strip() for part in text(found[1]).strip("[]").split(",")]
        listed = all(part.isdecimal() for part in ids) and (name == "device" or len(ids) > 1)
        number = len(ids) if listed else whole(found[1])
        if number and number > 0:
            yield found[0], number, name != "num_processes"
    if told.processes:
        yield *told.processes, False


def _grown(job: Job, attempts: Sequence[PlannedAttempt]) -> Iterator[Problem]:
    """Where the file says how many hosts, and the first attempt has more of them."""
    written = job.written(("resources", "instance_count"))
    if job.attempts == "auto" and written and attempts and attempts[0].instance_count > job.resources.instance_count:
        message = (
            f"the planner takes {written} or more hosts of a sharded model, and {attempts[0].label} has "
            f"{attempts[0].instance_count}; a step then works on the batches of all of them"
        )
        yield Problem(
            ("resources", "instance_count"), message, "name one resources.instance_type, or give memory.world_size"
        )
