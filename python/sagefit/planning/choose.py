"""From a workload to the instances it fits on, and from those to one: the first choice, and where to go from there."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from sagefit.catalog.instance_table import Instance, instances
from sagefit.catalog.prices import REFERENCE_REGION, Price, price
from sagefit.memory import Measured, Placement, Prediction, Tabular, Workload, predict
from sagefit.memory.objectives import depends_on_gpu
from sagefit.planning.candidate import (
    HEAD_ROOM,
    MOST_INSTANCES,
    NOT_ALLOWED,
    SPOT_BILLABLE,
    Candidate,
    Resource,
    Verdict,
    judge,
    order_of,
    verdict,
)

__all__ = [
    "HEAD_ROOM",
    "SPOT_BILLABLE",
    "Candidate",
    "Verdict",
    "candidates",
    "cheapest",
    "choose",
    "instances_for",
    "next_larger",
    "sideways",
    "verdict",
]

GROWN_COUNTS = (1, 2, 4, 8)
"""Instance counts that a sharded job may grow to by itself."""

GROWS_FROM = 2
"""The stage of sharding from which more instances lower what each GPU holds of gradients."""

WORTH_IT = 1.1
"""A larger instance must lower the load of the memory that ran out by this factor: 15 GiB to 16 is not enough."""

Cure = Literal["gpu_memory", "host_memory"]

_NO_MODEL = "the job file does not say what is trained (memory.model)"
_NO_NEURON = "memory of Trainium devices is not predicted"
_NEEDS_GPU = "its GPU memory was measured, and this type has no GPU"


@dataclass(frozen=True)
class _Offer:
    """A type in a region, with the values that do not depend on the workload."""

    instance: Instance
    price: Price | None
    order_usd: float
    flags: tuple[str, ...]


def candidates(
    types: Literal["auto"] | Sequence[str],
    instance_count: int,
    workload: Workload,
    region: str,
    *,
    allowed: Collection[str] | None = None,
    head_room: float = HEAD_ROOM,
    spot: bool = False,
    packaged: bool = False,
    gpu: bool | None = None,
) -> list[Candidate]:
    """The ways to run ``workload``, cheapest first, each with its verdict.

    ``types`` ``"auto"`` means all that ``allowed`` names (None or empty: all) and that suit the kind of model: GPU
    types for models of GPUs (Ampere or newer for bf16 and flash attention), other types for other models; never
    retired or burstable types, Trainium, or types sold through Training Plans. ``world_size`` sets the number of
    instances, up to 64; without it a job that shards gradients may grow to 8 instances if ``instance_count`` is less.
    All written types are judged; those that are not allowed or have too few GPUs for ``world_size`` are never chosen.
    Unknown names raise KeyError.
    ``packaged`` ignores refreshed prices, so that every machine gets the same order. ``gpu`` says whether ``"auto"``
    means types with GPUs, when the model alone must not decide it.
    """
    return [
        _candidate(offer, workload, placement, prediction, head_room, spot, permitted)
        for offer, placement, prediction in _predicted(types, instance_count, workload, region, packaged, gpu)
        if (permitted := not allowed or offer.instance.ml_type in allowed) or types != "auto"
    ]


def cheapest(
    types: Literal["auto"] | Sequence[str],
    instance_count: int,
    workload: Workload,
    region: str,
    *,
    head_room: float = HEAD_ROOM,
    spot: bool = False,
    packaged: bool = False,
) -> Candidate | None:
    """What `choose` takes of `candidates`. What costs more is not looked at."""
    for offer, placement, prediction in _predicted(types, instance_count, workload, region, packaged, None):
        if prediction and verdict(prediction.host, offer.instance.usable_host_gib, head_room) == "FITS":
            found = _candidate(offer, workload, placement, prediction, head_room, spot, permitted=True)
            if _may_be_chosen(found):
                return found
    return None


def _predicted(
    types: Literal["auto"] | Sequence[str],
    instance_count: int,
    workload: Workload,
    region: str,
    packaged: bool,
    gpu: bool | None,
) -> Iterator[tuple[_Offer, Placement, Prediction | None]]:
    """Where the workload could run and what it needs there, the cheapest first."""
    with_gpu = needs_gpu(workload) if gpu is None else gpu
    ampere = with_gpu is True and _needs_ampere(workload)
    names = "auto" if types == "auto" else tuple(dict.fromkeys(types))
    grows, size, every = workload.stage >= GROWS_FROM, workload.world_size, depends_on_gpu(workload)
    predictions: dict[Placement, Prediction | None] = {}
    for offer, placement, bare in _places(names, instance_count, size, grows, with_gpu, ampere, region, packaged):
        alike = placement if every else bare
        if alike not in predictions:
            predictions[alike] = predict(workload, alike)
        yield offer, placement, predictions[alike]


def choose(found: Iterable[Candidate], *, accept_risky: bool = False) -> Candidate | None:
    """The cheapest that fits, or None; see `Candidate.order`.

    A candidate without a price is chosen only when no fitting one has a price. Its ``price`` is then None, and the
    caller has to say so. If none fits and ``accept_risky`` is true, the RISKY one is chosen whose fuller memory is
    least full, in whole percent, and of equals the cheapest.
    """
    found = list(found)
    best = min(filter(_may_be_chosen, found), key=lambda c: c.order, default=None)
    if best or not accept_risky:
        return best
    risky = (c for c in found if c.verdict == "RISKY" and c.allowed and not c.too_few_gpus)
    return min(risky, key=lambda c: (round(max(c.gpu_share or 0.0, c.host_share or 0.0), 2), c.order), default=None)


def _may_be_chosen(candidate: Candidate) -> bool:
    return candidate.verdict == "FITS" and candidate.allowed


def next_larger(
    found: Iterable[Candidate], current: Candidate, *, cure: Cure, exclude: Collection[str] = ()
) -> Candidate | None:
    """The next candidate when ``current`` ran out of memory: the cheapest that fits and has a lower share in use.

    The share of GPU or host memory must fall by a tenth at least. The work never moves to fewer GPUs, or without GPUs
    to fewer vCPUs, because it would exceed its time limit. A workload of unknown model moves to a type with more of
    the one memory and no less of the other. ``exclude`` are types that were tried before.
    """
    resource: Resource = "gpu" if cure == "gpu_memory" else "host"
    other: Resource = "host" if resource == "gpu" else "gpu"
    if resource == "gpu" and not current.placement.gpus:
        return None
    limit = _load(current, resource) / WORTH_IT
    return min(
        (
            c
            for c in _replacements(found, current, exclude)
            if _load(c, resource) <= limit and (c.verdict == "FITS" or _load(c, other) <= _load(current, other))
        ),
        key=lambda c: c.order,
        default=None,
    )


def sideways(found: Iterable[Candidate], current: Candidate, *, exclude: Collection[str] = ()) -> Candidate | None:
    """The next candidate when ``current`` has no capacity: another type with no less memory, at the nearest price.

    Each type has its own capacity, so another size of the same family is enough; at equal prices another family wins.
    For one that is RISKY it may be RISKY too.
    """
    return min(
        (
            c
            for c in _replacements(found, current, exclude, "RISKY" if current.verdict == "RISKY" else None)
            if c.instance_type != current.instance_type
            and (c.usable_gpu_gib or 0) >= (current.usable_gpu_gib or 0)
            and c.usable_host_gib >= current.usable_host_gib
        ),
        key=lambda c: (abs(c.order_usd - current.order_usd), c.instance.family == current.instance.family, c.order),
        default=None,
    )


def needs_gpu(workload: Workload) -> bool | None:
    """Whether the model is one that is trained on GPUs; None when the job file does not say what is trained."""
    model = workload.model
    if model is None:
        return None
    return model.gpu_gib is not None if isinstance(model, Measured) else not isinstance(model, Tabular)


@cache
def _offers(region: str, packaged: bool) -> dict[str, _Offer]:
    return {name: _offer(instance, region, packaged) for name, instance in instances(packaged=packaged).items()}


def _offer(instance: Instance, region: str, packaged: bool) -> _Offer:
    known = price(instance.ml_type, region, packaged=packaged)
    flags = instance.flags
    if known is None:
        flags += (f"no price known in {region}",)
    elif known.estimated:
        flags += ("price estimated",)
    order = known or price(instance.ml_type, REFERENCE_REGION, packaged=packaged)
    return _Offer(instance, known, order.usd_per_hour if order else float("inf"), flags)


@lru_cache(maxsize=256)
def _places(
    types: Literal["auto"] | tuple[str, ...],
    least: int,
    world_size: int | None,
    grows: bool,
    with_gpu: bool | None,
    ampere: bool,
    region: str,
    packaged: bool,
) -> tuple[tuple[_Offer, Placement, Placement], ...]:
    """Where a workload could run, in the order of `Candidate.order`, which does not depend on the workload.

    The second placement is that without the model of GPU, for what depends on their number alone.
    """
    offers = _offers(region, packaged)
    found = [
        (offers[name], Placement.on(offers[name].instance, count), Placement(count, offers[name].instance.gpu_count))
        for name in (_automatic(with_gpu, ampere) if types == "auto" else types)
        for count in (_counts(least, offers[name].instance, world_size, grows) if types == "auto" else (least,))
    ]
    return tuple(
        sorted(found, key=lambda at: order_of(at[0].instance, at[0].price, at[0].order_usd * at[1].hosts, at[1]))
    )


@cache
def _automatic(gpu: bool | None, ampere: bool) -> tuple[str, ...]:
    return tuple(
        name
        for name, instance in instances().items()
        if not (instance.retired or instance.burstable or instance.training_plans or instance.trainium)
        and (gpu is None or gpu == bool(instance.gpu_count))
        and (instance.bf16 or not ampere)
    )


def _needs_ampere(workload: Workload) -> bool:
    """Whether the training runs on GPUs since Ampere only: bf16 and FlashAttention-2 do."""
    return needs_gpu(workload) is True and (workload.precision.startswith("bf16") or workload.attention == "flash")


def instances_for(world_size: int, instance: Instance) -> int:
    """How many instances have a GPU for each of ``world_size`` processes; 1 without GPUs, where they need none."""
    return math.ceil(world_size / instance.gpu_count) if instance.gpu_count else 1


def _counts(least: int, instance: Instance, world_size: int | None, grows: bool) -> tuple[int, ...]:
    if world_size is not None:
        count = max(least, instances_for(world_size, instance))
        return (count,) if count <= max(least, MOST_INSTANCES) else ()
    if not grows:
        return (least,)
    return (least, *(count for count in GROWN_COUNTS if count > least))


def _candidate(
    offer: _Offer,
    workload: Workload,
    placement: Placement,
    prediction: Prediction | None,
    head_room: float,
    spot: bool,
    permitted: bool,
) -> Candidate:
    instance = offer.instance
    if instance.trainium:
        prediction = None  # the formulas are those of CUDA
    host, gpu = instance.usable_host_gib, instance.usable_gpu_gib
    short = bool(placement.gpus) and (workload.world_size or 0) > placement.gpus
    unknown = _short(workload, placement, instance) if short else _unknown(instance, workload, prediction)
    outcome, binds = judge(prediction, host, gpu, head_room, unknown)
    return Candidate(
        instance=instance,
        instance_count=placement.hosts,
        placement=placement,
        prediction=prediction,
        gpu_share=prediction.gpu.upper / gpu if prediction and prediction.gpu and gpu else None,
        host_share=prediction.host.upper / host if prediction else None,
        verdict=outcome,
        binds=binds,
        unknown=unknown,
        head_room=head_room,
        price=offer.price,
        order_usd=offer.order_usd * placement.hosts,
        spot=spot,
        flags=offer.flags if permitted else (*offer.flags, NOT_ALLOWED),
        too_few_gpus=short,
    )


def _short(workload: Workload, placement: Placement, instance: Instance) -> str:
    size = workload.world_size
    return f"world_size {size} needs {size} GPUs, {placement.hosts} x {instance.ml_type} has {placement.gpus}"


def _unknown(instance: Instance, workload: Workload, prediction: Prediction | None) -> str:
    if instance.trainium:
        return _NO_NEURON
    if prediction is None:
        return _NO_MODEL
    if not instance.gpu_count:
        return _NEEDS_GPU if isinstance(workload.model, Measured) and workload.model.gpu_gib is not None else ""
    if prediction.gpu is not None and instance.usable_gpu_gib is None:
        return f"usable memory of {instance.accelerator} is not known"
    return ""


def _replacements(
    found: Iterable[Candidate], current: Candidate, exclude: Collection[str], risk: Verdict | None = None
) -> Iterable[Candidate]:
    """Candidates that may replace ``current``: same kind, no fewer GPUs (or vCPUs), and the best possible verdict, or
    ``risk``.
    """
    wanted: Verdict = "FITS" if current.prediction else "UNKNOWN"
    if current.instance.trainium:
        return
    for c in found:
        if c.verdict not in (wanted, risk) or not c.allowed or c.instance.trainium or c.instance_type in exclude:
            continue
        if bool(c.placement.gpus) != bool(current.placement.gpus) or c.placement.gpus < current.placement.gpus:
            continue
        if c.placement.gpus or _vcpus(c) >= _vcpus(current):
            yield c


def _vcpus(candidate: Candidate) -> int:
    return candidate.instance.vcpus * candidate.instance_count


def _load(candidate: Candidate, resource: Resource) -> float:
    """The predicted share of memory in use; without a prediction, a number that sorts in the same way."""
    memory = candidate.usable_host_gib
    estimate = candidate.prediction and candidate.prediction.host
    if resource == "gpu":
        memory = candidate.usable_gpu_gib or candidate.instance.accelerator_memory_gib or 0.0
        estimate = candidate.prediction and candidate.prediction.gpu
    return (estimate.upper if estimate else 1.0) / memory if memory else float("inf")
