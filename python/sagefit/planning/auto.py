"""``attempts: auto``: the attempts of a job and the edges between them, made from its memory prediction.

Remedies that cost nothing come first, then hardware that cures the class of failure. Failures of capacity and spot lead
to similar instances. No edge raises the predicted share of any memory, and an edge for a memory class lowers it: a run
never repeats what has just failed. Every attempt has as many GPUs as the first, so the effective batch stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sagefit.job import Attempt, Job
from sagefit.job.limits import most
from sagefit.job.model import FailureClass
from sagefit.job.values import Hyperparameter
from sagefit.memory import Workload
from sagefit.planning.advice import does_not_fit
from sagefit.planning.candidate import Resource
from sagefit.planning.choose import WORTH_IT, Candidate, choose, next_larger, sideways
from sagefit.planning.cost import reachable
from sagefit.planning.market import accepts_risky, fallbacks, one
from sagefit.planning.planned import PlannedAttempt, fill
from sagefit.planning.remedies import MakeRemedy, Remedy, accumulate, checkpoint, fewer_workers, stream

FIRST = "main"
MAX_VOLUME_GB = most("resources.volume_size_gb")
MORE_DISK = 1.1
REMEDIED = 0.98
"""Other hyperparameters answer a memory failure only if the predicted need falls to at most this share."""

LOADER: tuple[MakeRemedy, ...] = (stream, fewer_workers)
TENSORS: tuple[MakeRemedy, ...] = (accumulate, checkpoint)

# Which attempts cure a class of failure, the best first. A class that is not here ends the run: the state machine
# itself tries `internal` again, and with the other classes another attempt would fail in the same way.
CURES: Mapping[FailureClass, tuple[str, ...]] = {
    "gpu_memory": ("accumulate-2", "checkpointing", "larger-gpu"),
    "host_memory": ("streaming", "fewer-workers", "accumulate-2", "checkpointing", "larger-host", "larger-gpu"),
    "shared_memory": ("fewer-workers",),
    "disk": ("larger-volume", "larger-host", "larger-disk"),
    "spot": ("on-demand",),
    "capacity": ("on-demand", "other-capacity"),
    "quota": ("on-demand", "other-capacity"),
}


@dataclass(frozen=True)
class _Step:
    """An attempt before it has edges."""

    name: str
    reason: str
    fit: Candidate
    workload: Workload
    volume_gb: int
    spot: bool = False
    hyperparameters: Mapping[str, Hyperparameter] = field(default_factory=dict)
    serves: tuple[str, ...] = ()

    @property
    def disk_gb(self) -> int:
        """NVMe where the type has it, for the volume then has no effect."""
        return self.fit.instance.nvme_gb or self.volume_gb

    def with_remedy(self, job: Job, remedy: Remedy) -> _Step:
        """The same instances with other hyperparameters."""
        fit = one(job, remedy.workload, self.fit.instance_type, self.fit.instance_count)
        return replace(
            self,
            name=remedy.name,
            reason=remedy.reason,
            fit=fit,
            workload=remedy.workload,
            hyperparameters=remedy.hyperparameters,
        )


def graph(job: Job, workload: Workload, found: Sequence[Candidate]) -> list[PlannedAttempt]:
    """The attempts of a job with ``attempts: auto``, in order, from its ``workload`` and its `market.choices`.

    Raises SagefitError (exit code 3) when no instance that the job may use fits.
    """
    steps = _merged(_steps(job, workload, found))
    planned = [_planned(job, step, _edges(step, steps[index + 1 :])) for index, step in enumerate(steps)]
    return reachable(planned)


def first_choice(job: Job, found: Sequence[Candidate]) -> Candidate | None:
    """The one of ``found`` that `choose` takes. A single type is taken even when nothing is known of the job's need."""
    alone = found[0] if len(found) == 1 else None
    if alone and alone.verdict == "UNKNOWN" and not alone.too_few_gpus:
        return alone
    return choose(found, accept_risky=accepts_risky(job))


def _steps(job: Job, workload: Workload, found: Sequence[Candidate]) -> Iterator[_Step]:
    """The attempts worth having, in the order in which they may follow one another."""
    chosen = first_choice(job, found)
    if chosen is None:
        raise does_not_fit(job, workload, found)
    own = job.resources
    reason = "The cheapest that fits" if len(found) > 1 else "The type that the job file names"
    if chosen.verdict == "RISKY":
        reason = "It comes nearest to fitting: by the prediction it fits, by its upper bound no type does"
    main = _Step(FIRST, reason, chosen, workload, own.volume_size_gb, own.spot)
    yield main
    if main.spot:
        yield replace(main, name="on-demand", reason="The same without waiting for spare capacity", spot=False)
    main = replace(main, spot=False)  # a run that has lost an attempt does not wait for spare capacity again
    for_gpu = list(_remedied(job, main, TENSORS, gpu_load)) if main.fit.gpu_share else []
    on_host = LOADER if main.fit.placement.gpus else LOADER + TENSORS  # without a GPU the host holds the tensors too
    for_host = list(_remedied(job, main, on_host, host_load)) if main.fit.host_share else []
    yield from for_gpu
    yield from for_host
    yield from _hardware(job, main, [main, *for_host][-1], [main, *for_gpu][-1])


def _remedied(
    job: Job, main: _Step, remedies: Sequence[MakeRemedy], load: Callable[[Candidate], float]
) -> Iterator[_Step]:
    """One attempt for each remedy that lowers the predicted load, added to the remedies before it."""
    leanest = main
    for make in remedies:
        remedy = make(job, leanest.hyperparameters, leanest.workload)
        step = leanest.with_remedy(job, remedy) if remedy else leanest
        if step.fit.verdict in ("FITS", main.fit.verdict) and load(step.fit) < load(leanest.fit):
            leanest = step
            yield step


def _hardware(job: Job, main: _Step, lean_host: _Step, lean_gpu: _Step) -> Iterator[_Step]:
    """Other disks and other types. A larger type comes after the remedies of its class and keeps them."""
    if not main.fit.instance.nvme_gb and main.volume_gb < MAX_VOLUME_GB:
        volume = min(2 * main.volume_gb, MAX_VOLUME_GB)
        yield replace(
            main, name="larger-volume", reason=f"{volume} GB of disk instead of {main.volume_gb}", volume_gb=volume
        )
    similar = _no_worse(job, main)
    other = sideways(similar, main.fit)
    if other:
        reason = "Another pool of capacity with no less memory, at the nearest price"
        yield replace(main, name="other-capacity", reason=reason, fit=other)
    host = next_larger(_no_worse(job, lean_host), lean_host.fit, cure="host_memory")
    if host:
        more = f"{host.usable_host_gib:.0f} GiB of usable host memory instead of {main.fit.usable_host_gib:.0f}"
        yield replace(lean_host, name="larger-host", reason=more, fit=host)
    disk_gb = main.fit.instance.nvme_gb * MORE_DISK
    if disk_gb and not (host and lean_host is main and host.instance.nvme_gb >= disk_gb):
        roomy = [c for c in similar if c.instance.nvme_gb >= disk_gb and c.verdict == main.fit.verdict]
        if disk := min(roomy, key=lambda c: c.order, default=None):
            more = f"{disk.instance.nvme_gb} GB of NVMe disk instead of {main.fit.instance.nvme_gb}"
            yield replace(main, name="larger-disk", reason=more, fit=disk, volume_gb=disk.instance.nvme_gb)
    gpu = next_larger(_no_worse(job, lean_gpu), lean_gpu.fit, cure="gpu_memory")
    if gpu:
        more = f"{_gpu(gpu)} instead of {_gpu(main.fit)}"
        yield replace(lean_gpu, name="larger-gpu", reason=more, fit=gpu)


def _no_worse(job: Job, step: _Step) -> list[Candidate]:
    """Candidates for ``step`` with no memory fuller than now and as many ranks, which keeps the effective batch."""
    if step.fit.instance.trainium:
        return []  # an image for Neuron runs on no other kind
    gpu, host = gpu_load(step.fit), host_load(step.fit)
    return [
        c
        for c in fallbacks(job, step.workload)
        if c.placement.gpus == step.fit.placement.gpus
        and (c.placement.gpus or c.instance_count == step.fit.instance_count)  # without GPUs each host is a rank
        and gpu_load(c) <= gpu
        and host_load(c) <= host
        and (c.instance.nvme_gb or step.volume_gb) >= step.volume_gb
    ]


def _gpu(candidate: Candidate) -> str:
    return f"{candidate.instance.accelerator} with {candidate.usable_gpu_gib or 0:.0f} GiB"


def gpu_load(candidate: Candidate) -> float:
    """The share of a GPU's memory in use; without a prediction a number that sorts in the same way. 0 without GPUs."""
    if candidate.gpu_share is None:
        return 1 / candidate.usable_gpu_gib if candidate.usable_gpu_gib else 0.0
    return candidate.gpu_share


def host_load(candidate: Candidate) -> float:
    """The same for the host's memory."""
    return 1 / candidate.usable_host_gib if candidate.host_share is None else candidate.host_share


def _merged(steps: Iterable[_Step]) -> list[_Step]:
    """Merge steps that would run the same into one, which serves under all of their names."""
    kept: dict[object, _Step] = {}
    for step in steps:
        same = (step.fit.instance_type, step.fit.instance_count, step.spot, step.volume_gb, str(step.hyperparameters))
        if first := kept.get(same):
            kept[same] = replace(first, reason=f"{first.reason}. {step.reason}", serves=(*first.serves, step.name))
        else:
            kept[same] = step
    return list(kept.values())


def _edges(step: _Step, later: Sequence[_Step]) -> dict[FailureClass, str]:
    """For each class of failure the best later attempt that cures it."""
    by_name = {name: target for target in later for name in (target.name, *target.serves)}
    edges: dict[FailureClass, str] = {}
    for kind, names in CURES.items():
        targets = (by_name[name] for name in names if name in by_name)
        if target := next((target for target in targets if _cures(kind, step, target)), None):
            edges[kind] = target.name
    return edges


def _cures(kind: FailureClass, step: _Step, target: _Step) -> bool:
    gpu, gpu_before = gpu_load(target.fit), gpu_load(step.fit)
    host, host_before = host_load(target.fit), host_load(step.fit)
    workers = target.workload.workers - step.workload.workers
    if (
        gpu > gpu_before
        or host > host_before
        or workers > 0
        or target.disk_gb < step.volume_gb
        or (target.spot and not step.spot)
    ):
        return False
    other_type = target.fit.instance_type != step.fit.instance_type
    aside = target.hyperparameters == step.hyperparameters and (other_type or step.spot)
    cured: dict[FailureClass, bool] = {
        "gpu_memory": gpu_before > 0 and (gpu <= gpu_before / WORTH_IT or _needs_less(step, target, "gpu")),
        "host_memory": host <= host_before / WORTH_IT or _needs_less(step, target, "host"),
        "shared_memory": workers < 0,
        "disk": target.disk_gb > step.disk_gb,
        "spot": step.spot and not target.spot,
        "capacity": aside,
        "quota": aside,
    }
    return cured[kind]


def _needs_less(step: _Step, target: _Step, resource: Resource) -> bool:
    """Whether other hyperparameters are predicted to need less of a memory, by enough to be worth an attempt."""
    before, after = step.fit.prediction, target.fit.prediction
    if target.hyperparameters == step.hyperparameters or before is None or after is None:
        return False
    needs = (before.gpu, after.gpu) if resource == "gpu" else (before.host, after.host)
    return needs[0] is not None and needs[1] is not None and needs[1].upper <= needs[0].upper * REMEDIED


def _planned(job: Job, step: _Step, edges: dict[FailureClass, str]) -> PlannedAttempt:
    attempt = Attempt(
        name=step.name,
        reason=step.reason,
        instance_type=step.fit.instance_type,
        instance_count=step.fit.instance_count,
        spot=step.spot,
        hyperparameters=dict(step.hyperparameters),
        volume_size_gb=step.volume_gb,
        next=edges,
    )
    return fill(job, attempt, step.fit if step.fit.host_share is not None else None)
