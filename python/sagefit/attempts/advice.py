"""When nothing fits: which changes would make it fit, each tried on the planner and none promised from a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from sagefit.attempts.market import choices
from sagefit.catalog.choose import Candidate, choose
from sagefit.errors import DOES_NOT_FIT, SagefitError
from sagefit.job import Job
from sagefit.job.memory_model import Knob
from sagefit.memory import Measured, Tabular, Transformer, Workload, predict
from sagefit.memory.knobs import name_of
from sagefit.paths import display

MOST = 8
PAIRED = 5
_ELSEWHERE = ("sharding", "type")  # changes that only show on other instances


@dataclass(frozen=True)
class Change:
    """A change to the job: its kind, how to write it, and what it makes of the workload and the instance count."""

    kind: str
    text: str
    workload: Mapping[str, Any]
    instance_count: int | None = None


@dataclass(frozen=True)
class Advice:
    """Changes with which the job fits on ``fit``, and by how many GiB the need falls below that of the nearest miss."""

    changes: tuple[Change, ...]
    fit: Candidate
    gpu_gib: float
    host_gib: float

    @property
    def text(self) -> str:
        """One line for people."""
        saved = ((self.gpu_gib, "per GPU"), (self.host_gib, "per host"))
        gain = ", ".join(f"{gib:.1f} GiB less {where}" for gib, where in saved if gib >= 0.05)
        many = f"{self.fit.instance_count} x " if self.fit.instance_count > 1 else ""
        what = "; ".join(change.text for change in self.changes)
        return f"{what}{f' ({gain})' if gain else ''}: fits on {many}{self.fit.instance_type}"

    def as_json(self) -> dict[str, object]:
        """The object in ``remedies`` of ``sagefit size --json``."""
        return {
            "changes": [change.text for change in self.changes],
            "gpu_gib": round(self.gpu_gib, 3),
            "host_gib": round(self.host_gib, 3),
            "instance_type": self.fit.instance_type,
            "instance_count": self.fit.instance_count,
        }


def advise(job: Job, workload: Workload, found: Sequence[Candidate]) -> list[Advice]:
    """What would make the job fit, most GiB first: single changes, else pairs of the best, else as many as it takes."""
    near = nearest(found)
    if workload.model is None or near is None:
        return []
    helpful = [(change, gib) for change in changes_of(job, workload) if (gib := _relief(change, workload, near)) > 0]
    enough: dict[str, Advice] = {}

    def attempt(*several: Change) -> None:
        kinds = ", ".join(change.kind for change in several)
        if kinds not in enough and (advice := _try(job, workload, near, several)):
            enough[kinds] = advice

    for change, _ in helpful:
        attempt(change)
    if not enough:
        strongest = {change.kind: (change, gib) for change, gib in helpful}.values()  # the last of a kind
        best = [change for change, _ in sorted(strongest, key=lambda pair: -pair[1])]
        for pair in combinations(best[:PAIRED], 2):
            attempt(*pair)
        best.sort(key=lambda change: change.kind in _ELSEWHERE)  # other instances only when all else is done
        for count in range(3, len(best) + 1):
            if not enough:
                attempt(*best[:count])
    return sorted(enough.values(), key=lambda a: (-a.gpu_gib - a.host_gib, a.text))[:MOST]


def _relief(change: Change, workload: Workload, near: Candidate) -> float:
    """GiB that a change takes off what is too full; without bound where only other instances show it."""
    if change.kind in _ELSEWHERE:
        return float("inf")
    before, after = near.prediction, predict(replace(workload, **change.workload), near.placement)
    if before is None or after is None:
        return 0.0
    full = 1 - near.head_room
    gib = before.host.upper - after.host.upper if (near.host_share or 0.0) > full else 0.0
    if before.gpu and after.gpu and (near.gpu_share or 0.0) > full:
        gib += before.gpu.upper - after.gpu.upper
    return gib


def changes_of(job: Job, now: Workload) -> Iterator[Change]:
    """What could be tried, the mildest of a kind first. None of it makes another effective batch."""

    def say(knob: Knob, value: object) -> str:
        name = name_of(job, knob)
        field = "memory.loader." if knob in ("workers", "prefetch") else "memory."
        return f"hyperparameters.{name}: {value}" if name else f"{field}{knob}: {value}"

    transformer = isinstance(now.model, Transformer)
    if not isinstance(now.model, Measured | Tabular):
        for micro in _smaller(now.micro_batch):
            steps = now.accumulation * (now.micro_batch // micro)
            text = f"{say('micro_batch', micro)} with {say('accumulation', steps)}"
            yield Change("batch", text, {"micro_batch": micro, "accumulation": steps})
        if not now.gradient_checkpointing:
            yield Change("checkpointing", say("gradient_checkpointing", "true"), {"gradient_checkpointing": True})
        if now.precision == "fp32":
            yield Change("precision", "memory.precision: bf16-mixed", {"precision": "bf16-mixed"})
        if now.optimizer in ("adamw", "lion", "sgd-momentum"):
            yield Change("optimizer", "memory.optimizer: adamw-8bit", {"optimizer": "adamw-8bit"})
    if transformer:
        if now.attention != "flash" and now.precision != "fp32":
            yield Change("attention", "memory.attention: flash", {"attention": "flash"})
        if now.stack == "hf-trainer":
            yield Change("stack", "memory.stack: hf-liger", {"stack": "hf-liger"})
        for method in {"full": ("lora", "qlora"), "lora": ("qlora",)}.get(now.method, ()):
            yield Change("method", f"memory.method: {method}", {"method": method})
        yield from _sharding(job, now)
        if now.sequence_length > 1:
            text = say("sequence_length", now.sequence_length // 2)
            yield Change("length", text, {"sequence_length": now.sequence_length // 2})
    if now.workers:
        yield Change("workers", say("workers", 0), {"workers": 0})
    if now.dataset_in_memory and not isinstance(now.model, Tabular):
        yield Change("dataset", "memory.dataset.in_memory: false", {"dataset_in_memory": False})
    if job.resources.instance_type != "auto":
        yield Change("type", "resources.instance_type: auto", {})


def _sharding(job: Job, now: Workload) -> Iterator[Change]:
    counts = (1, 2, 4, 8) if job.resources.instance_type != "auto" else (job.resources.instance_count,)
    for count in counts:
        if count >= job.resources.instance_count and (now.sharding != "zero3" or count > job.resources.instance_count):
            over = f" with resources.instance_count: {count}" if count > job.resources.instance_count else ""
            yield Change("sharding", f"memory.sharding: zero3{over}", {"sharding": "zero3", "world_size": None}, count)
    if now.sharding != "none" and now.cpu_offload == "none":
        yield Change("offload", "memory.cpu_offload: optimizer", {"cpu_offload": "optimizer"})


def _smaller(batch: int) -> list[int]:
    """Batches that go into ``batch`` without a rest, down to 1."""
    halves = [batch // 2**k for k in range(1, batch.bit_length()) if batch % 2**k == 0]
    return halves if batch == 1 or 1 in halves else [*halves, 1]


def _try(job: Job, workload: Workload, near: Candidate, changes: Sequence[Change]) -> Advice | None:
    changed: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for change in changes:
        changed |= change.workload
        resources |= {"instance_type": "auto"} if change.kind == "type" else {}
        resources |= {"instance_count": change.instance_count} if change.instance_count else {}
    other = job.model_copy(update={"resources": job.resources.model_copy(update=resources)}) if resources else job
    fit = choose(choices(other, replace(workload, **changed)))
    if fit is None or fit.prediction is None or near.prediction is None:
        return None
    before, after = near.prediction, fit.prediction
    gpu = before.gpu.upper - after.gpu.upper if before.gpu and after.gpu else 0.0
    return Advice(tuple(changes), fit, gpu, before.host.upper - after.host.upper)


def nearest(found: Sequence[Candidate]) -> Candidate | None:
    """The candidate that is least over its budget."""
    judged = [c for c in found if c.host_share is not None and c.prediction is not None]
    return min(
        judged,
        key=lambda c: (bool(c.unknown), max(c.gpu_share or 0.0, c.host_share or 0.0), c.order),
        default=None,
    )


def does_not_fit(job: Job, workload: Workload, found: Sequence[Candidate]) -> SagefitError:
    """The error of a job for which no instance fits, with what would help as its hint."""
    near = nearest(found)
    where = f"{display(job.path)}: resources.instance_type"
    why = f"; nearest is {near.instance_type}, {near.verdict} ({near.reason})" if near else ""
    lines = [advice.text for advice in advise(job, workload, found)]
    remedies = (
        ["what would make it fit:", *(f"  {line}" for line in lines)]
        if lines
        else ["all changes together are not enough"]
    )
    return SagefitError(
        f"{where}: the job does not fit for certain on any instance it may use{why}",
        hint="\n".join([*remedies, "or write the attempts out, to run them whatever is predicted"]),
        exit_code=DOES_NOT_FIT,
    )
