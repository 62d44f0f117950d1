"""What to change in a job file after each class of failure, as edits of its fields. Whether it helps is tried later.

A proposal only has what takes effect by itself: hyperparameters that the script knows, and what Sagefit itself sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast

import yaml

from sagefit.catalog import instances
from sagefit.errors import SagefitError
from sagefit.job import Attempt, Job
from sagefit.job.edits import Edit
from sagefit.job.key import Key
from sagefit.job.memory_model import Knob
from sagefit.job.processing_model import Step
from sagefit.job.tuning import Range
from sagefit.job.values import Hyperparameter, as_text, as_written, duration
from sagefit.memory import Workload
from sagefit.memory.knobs import name_of
from sagefit.planning import JobPlan
from sagefit.planning.choose import Candidate, next_larger, sideways
from sagefit.planning.market import fallbacks, one
from sagefit.planning.remedies import MakeRemedy, accumulate, checkpoint, fewer_workers, stream
from sagefit.running.records import AttemptRecord, StepRecord

TWICE = 2
TOGETHER = "together"
"""The kind of several changes at once, of no use where one is enough."""
MORE_DISK = 1.1
"""An NVMe disk that is less larger than this is not worth another type."""
WAIT_SECONDS = 7200
"""For how long to wait for GPU instances where the job file says nothing."""

SAME = "the same effective batch"
_MEMORY = ("gpu_memory", "host_memory")
_SEARCHED: Mapping[str, tuple[Knob, ...]] = {
    "gpu_memory": ("micro_batch", "sequence_length"),
    "host_memory": ("workers", "micro_batch", "sequence_length"),
    "shared_memory": ("workers", "micro_batch"),
}
_MAKERS: Mapping[str, tuple[MakeRemedy, ...]] = {
    "gpu_memory": (accumulate, checkpoint),
    "host_memory": (stream, fewer_workers, accumulate, checkpoint),
    "shared_memory": (fewer_workers,),
}


@dataclass(frozen=True)
class Proposal:
    """Edits of the job file, and in words what they do. Without edits the measured peaks of the run are the change."""

    words: str
    edits: tuple[Edit, ...] = ()
    kind: str = ""  # of several of a kind one is enough


@dataclass(frozen=True)
class Failed:
    """What failed, beside the job file as it is now: an attempt or a step of a run, and its class.

    ``plan`` knows what the attempt measured, if it measured anything.
    """

    plan: JobPlan
    record: AttemptRecord | StepRecord
    failure_class: str
    learned: bool = field(default=False)

    @property
    def job(self) -> Job:
        """The job as its file has it now."""
        return self.plan.job

    @cached_property
    def index(self) -> int | None:
        """The place of the attempt among the written ones, or of the step; None where Sagefit makes the attempts."""
        of: list[Any] = (
            [*self.job.processing] if self.step else self.job.attempts if self.job.attempts != "auto" else []
        )
        return next((at for at, each in enumerate(of) if each.name == self.record.name), None)

    @cached_property
    def step(self) -> Step | None:
        """The processing step that failed, if it was one."""
        steps = self.job.processing if isinstance(self.record, StepRecord) else []
        return next((step for step in steps if step.name == self.record.name), None)

    @cached_property
    def attempt(self) -> Attempt | None:
        """The written attempt that failed."""
        written = self.job.attempts
        return written[self.index] if self.step is None and self.index is not None and written != "auto" else None

    @property
    def is_known(self) -> bool:
        """Whether the job file still has what failed."""
        if isinstance(self.record, StepRecord):
            return self.step is not None
        return self.job.attempts == "auto" or self.attempt is not None

    @cached_property
    def own(self) -> dict[str, Hyperparameter]:
        """The hyperparameters that the attempt sets beside the job's."""
        if self.attempt:
            return dict(self.attempt.hyperparameters)
        try:
            planned = self.plan.attempt(self.record.name)
        except SagefitError:  # after what the run measured, the job fits nowhere
            return {}
        return {name: yaml.safe_load(value) for name, value in planned.hyperparameters.items()} if planned else {}

    @cached_property
    def workload(self) -> Workload:
        """What trained in it; of a step nothing is known."""
        if self.step:
            return Workload(model=None)
        return self.plan.workload({**self.job.hyperparameters, **self.own})

    @cached_property
    def candidate(self) -> Candidate | None:
        """It, on its instances; None for types that are not known any more, and for instance groups."""
        if self.record.instance_type not in instances():
            return None
        return one(self.job, self.workload, self.record.instance_type, self.record.instance_count)

    @property
    def is_automatic(self) -> bool:
        """Whether Sagefit chooses its instance type."""
        return self.step is None and self.attempt is None and not isinstance(self.job.resources.instance_type, str)

    def value(self, name: str) -> Any:
        """A field of its resources."""
        own = getattr(self.attempt, name, None) if self.attempt else None
        return getattr(self.step.resources if self.step else self.job.resources, name, None) if own is None else own

    def place(self, name: str) -> Key:
        """Where the job file is to say something about its resources."""
        if self.step:
            return "processing", cast(int, self.index), "resources", name
        own = self.attempt and getattr(self.attempt, name) is not None
        # Without spot, max_wait of the resources would be wrong, and in an attempt it is not read.
        if self.attempt and (own or len(self.job.attempts) > 1 or name == "spot"):
            return self.job.spelt(("attempts", cast(int, self.index), name))
        return "resources", name

    def hyperparameter(self, name: str) -> Key:
        """Where the job file is to say which value a hyperparameter has."""
        if self.attempt and (name in self.attempt.hyperparameters or len(self.job.attempts) > 1):
            return "attempts", cast(int, self.index), "hyperparameters", name
        return "hyperparameters", name


def proposals(failed: Failed) -> Iterator[Proposal]:
    """Changes for the class of failure, those without a price first."""
    if not failed.is_known:
        return
    if failed.learned and failed.failure_class in _MEMORY and failed.job.attempts == "auto":
        yield Proposal("choose the attempts again, by what this run measured")
    if not failed.step:
        yield from _hyperparameters(failed)
        yield from _narrower(failed)
    yield from _OF_CLASS.get(failed.failure_class, _none)(failed)


def _none(_failed: Failed) -> Iterator[Proposal]:
    return iter(())


def _hyperparameters(failed: Failed) -> Iterator[Proposal]:
    """Each remedy alone, a batch as much smaller as is needed; then all of them together."""
    makers = _MAKERS.get(failed.failure_class, ())
    alone = [make for make in makers if _made(failed, [make])]
    most: dict[MakeRemedy, int] = {accumulate: failed.workload.micro_batch, fewer_workers: failed.workload.workers}
    often = {make: range(1, most.get(make, 1).bit_length() + 1) for make in alone}  # how often each may halve
    for make in alone:
        for times in often[make]:
            if found := _made(failed, [make] * times):
                yield replace(found, kind=make.__name__)
    if len(alone) < 2:
        return
    once = [make for make in alone if make not in most]
    halved = [make for make in alone if make in most]
    for times in range(1, max((len(often[make]) for make in halved), default=1) + 1):
        together = [*once, *(make for make in halved for _ in range(min(times, len(often[make]) - 1)))]
        if found := _made(failed, together):
            yield replace(found, kind=TOGETHER)


def _made(failed: Failed, makers: list[MakeRemedy]) -> Proposal | None:
    job, values, workload, words = failed.job, dict(failed.own), failed.workload, []
    for make in makers:
        remedy = make(job, values, workload)
        if remedy is None:
            return None
        values, workload = dict(remedy.hyperparameters), remedy.workload
        words.append("" if make in (accumulate, fewer_workers) else remedy.reason)
    first = failed.workload
    if fewer_workers in makers:
        words.append(f"{workload.workers} loader workers instead of {first.workers}")
    if accumulate in makers:
        smaller = f"Micro-batch {workload.micro_batch} instead of {first.micro_batch}"
        words.append(f"{smaller}, accumulation {workload.accumulation} instead of {first.accumulation}: {SAME}")
    now = {**job.hyperparameters, **failed.own} if failed.attempt else job.hyperparameters
    changed = {name: value for name, value in values.items() if name not in now or as_text(now[name]) != as_text(value)}
    edits = tuple(Edit(failed.hyperparameter(name), value) for name, value in changed.items())
    return Proposal("; ".join(filter(None, words)), edits) if edits else None


def _narrower(failed: Failed) -> Iterator[Proposal]:
    """A search without its largest values of what takes memory, as many left out as have to be.

    The other remedies do not touch what is searched.
    """
    ranges = failed.job.tuning.ranges if failed.job.tuning and not failed.step else {}
    for knob in _SEARCHED.get(failed.failure_class, ()):
        name = name_of(failed.job, knob, ranges)
        for words, key, value in _less(ranges.get(name or "")):
            edit = Edit(("tuning", "ranges", str(name), *key), value)
            yield Proposal(f"search {name} {words}", (edit,), kind=f"narrower {knob}")


def _less(searched: Range | list[Any] | None) -> Iterator[tuple[str, Key, Any]]:
    """Smaller ends of what is searched, the largest first: in words, where one stands, and what stands there then."""
    if isinstance(searched, Range) and searched.is_whole:
        most = int(searched.max)
        while (most := most // TWICE) > searched.min:
            yield f"up to {most} instead of {searched.max}", ("max",), most
    elif isinstance(searched, list) and all(isinstance(value, int) for value in searched):
        largest, *smaller = sorted(searched, reverse=True)
        for most in smaller:
            yield f"up to {most} instead of {largest}", (), [value for value in searched if value <= most]


def _larger(failed: Failed) -> Iterator[Proposal]:
    cure: Literal["gpu_memory", "host_memory"] = "gpu_memory" if failed.failure_class == "gpu_memory" else "host_memory"
    before = failed.candidate
    grows = isinstance(failed.record, AttemptRecord) and failed.record.growth  # a larger host only dies later
    if before is None or grows or (failed.is_automatic and failed.learned):
        return
    after = next_larger(_others(failed, before), before, cure=cure)
    if after is None:
        return
    if cure == "gpu_memory":
        words = f"a GPU with {after.usable_gpu_gib or 0:.0f} GiB instead of {before.usable_gpu_gib or 0:.0f}"
    else:
        words = f"a host with {after.usable_host_gib:.0f} usable GiB instead of {before.usable_host_gib:.0f}"
    yield Proposal(words, _on(failed, after))


def _other_type(failed: Failed) -> Iterator[Proposal]:
    before = failed.candidate
    if before and (after := sideways(_others(failed, before), before)):
        yield Proposal("a type of another pool of capacity, with no less memory", _on(failed, after))


def _capacity(failed: Failed) -> Iterator[Proposal]:
    yield from _other_type(failed)
    before = failed.candidate
    if failed.step is None and before and before.instance.gpu_count:
        seconds = TWICE * failed.value("max_pending") if failed.value("max_pending") else WAIT_SECONDS
        words = f"wait for instances for up to {duration(seconds)}"
        yield Proposal(words, (Edit(failed.place("max_pending"), as_written(seconds)),))


def _disk(failed: Failed) -> Iterator[Proposal]:
    before = failed.candidate
    if before is None or not before.instance.nvme_gb:
        now = failed.value("volume_size_gb")
        words = f"a volume of {TWICE * now} GB instead of {now}"
        yield Proposal(words, (Edit(failed.place("volume_size_gb"), TWICE * now),))
        return
    roomy = [
        each
        for each in _others(failed, before)
        if each.instance.nvme_gb >= MORE_DISK * before.instance.nvme_gb
        and each.placement == before.placement
        and each.instance.vcpus >= before.instance.vcpus
        and each.verdict == before.verdict
    ]
    if after := min(roomy, key=lambda each: each.order, default=None):
        words = f"{after.instance.nvme_gb} GB of NVMe disk instead of {before.instance.nvme_gb}"
        yield Proposal(words, _on(failed, after))


def _time(failed: Failed) -> Iterator[Proposal]:
    now = failed.value("max_runtime")
    edits = [Edit(failed.place("max_runtime"), as_written(TWICE * now))]
    if failed.step is None and failed.value("max_wait"):
        edits.append(Edit(failed.place("max_wait"), as_written(TWICE * failed.value("max_wait"))))
    yield Proposal(f"up to {duration(TWICE * now)} instead of {duration(now)}", tuple(edits))


def _spot(failed: Failed) -> Iterator[Proposal]:
    yield Proposal("on-demand instances instead of spot", (Edit(failed.place("spot"), False),))
    if now := failed.value("max_wait"):
        words = f"wait for spot instances for up to {duration(TWICE * now)} instead of {duration(now)}"
        yield Proposal(words, (Edit(failed.place("max_wait"), as_written(TWICE * now)),))


def _others(failed: Failed, before: Candidate) -> list[Candidate]:
    """Candidates in its place: of a step any types, as a step has no list."""
    job = failed.job
    if failed.step or isinstance(job.resources.instance_type, str):
        resources = job.resources.model_copy(
            update={"instance_type": before.instance_type, "instance_count": before.instance_count}
        )
        job = job.model_copy(update={"resources": resources})
    return [each for each in fallbacks(job, failed.workload) if each.instance_count == before.instance_count]


def _on(failed: Failed, after: Candidate) -> tuple[Edit, ...]:
    return (Edit(failed.place("instance_type"), after.instance_type),)


_OF_CLASS: Mapping[str, Callable[[Failed], Iterator[Proposal]]] = {
    "gpu_memory": _larger,
    "host_memory": _larger,
    "disk": _disk,
    "time": _time,
    "spot": _spot,
    "capacity": _capacity,
    "quota": _other_type,
}
