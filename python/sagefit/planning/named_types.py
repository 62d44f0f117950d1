"""Types that a job names and that are rarely what somebody wants: retired ones, and GPUs older than Ampere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sagefit.catalog.instance_table import Instance, instances
from sagefit.job import Job
from sagefit.job.key import Key
from sagefit.job.problem import Problem
from sagefit.job.values import Hyperparameter
from sagefit.memory import Workload
from sagefit.planning.job_plan import JobPlan


def retired_types(job: Job) -> list[Problem]:
    """Types that AWS has taken off its lists of EC2: ``auto`` leaves them out."""
    found = []
    for field, name, _ in named_types(job):
        instance = instances().get(name)
        if instance is not None and instance.retired:
            message = f"{name} is retired: AWS has taken it off the lists of EC2, and capacity may be gone"
            found.append(Problem(field, message, "name a newer type, or auto, which leaves retired types out"))
    return list(dict.fromkeys(found))


def older_gpus(plan: JobPlan) -> list[Problem]:
    """What a user should know of the types that the job names: ``auto`` leaves them out.

    FlashAttention-2 has kernels for Ampere, Ada and Hopper (its README). The Trainer asks torch whether a GPU has bf16,
    and releases of torch answer differently where it is only emulated (``torch.cuda.is_bf16_supported``).
    """
    found = []
    for field, name, hyperparameters in named_types(plan.job):
        instance = instances().get(name)
        if instance is not None and instance.gpu_count and not instance.bf16:
            found += [Problem(field, *lack) for lack in _lacks(instance, plan.workload(hyperparameters))]
    return list(dict.fromkeys(found))


def _lacks(instance: Instance, workload: Workload) -> Iterator[tuple[str, str]]:
    gpu, newer = (
        f"the {instance.accelerator} of {instance.ml_type}",
        "a type with GPUs from Ampere on, such as g5 or g6",
    )
    if workload.attention == "flash":
        yield f"FlashAttention-2 does not start on {gpu}, which is older than Ampere", f"take sdpa, or {newer}"
    if workload.precision.startswith("bf16"):
        yield f"{gpu} only emulates bf16: it is slow, or a trainer refuses it", f"train in fp16, or take {newer}"


def named_types(job: Job) -> Iterator[tuple[Key, str, Mapping[str, Hyperparameter]]]:
    """Types that an attempt may run on, each with the field that names it and the attempt's hyperparameters."""
    if job.attempts == "auto":
        yield from ((*at, job.hyperparameters) for at in _of_resources(job))
        return
    for index, attempt in enumerate(job.attempts):
        given = job.hyperparameters | attempt.hyperparameters
        if attempt.instance_type:
            yield ("attempts", index, "instance_type"), attempt.instance_type, given
        else:
            yield from ((*at, given) for at in _of_resources(job))


def _of_resources(job: Job) -> Iterator[tuple[Key, str]]:
    resources = job.resources
    if resources.instance_groups:
        for index, group in enumerate(resources.instance_groups):
            yield ("resources", "instance_groups", index, "instance_type"), group.instance_type
    elif isinstance(resources.instance_type, list):
        yield from ((("resources", "instance_type", index), name) for index, name in enumerate(resources.instance_type))
    elif resources.instance_type != "auto":
        yield ("resources", "instance_type"), resources.instance_type
