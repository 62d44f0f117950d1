"""A way to run a workload: instances of one type, what it needs there, what that costs, and the verdict."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sagefit.catalog.instance_table import Instance
from sagefit.catalog.prices import Price
from sagefit.catalog.quotas import quota_name
from sagefit.memory import Estimate, Placement, Prediction

Verdict = Literal["FITS", "RISKY", "OOM", "UNKNOWN"]
Resource = Literal["gpu", "host"]

HEAD_ROOM = 0.10
"""The share of usable memory that stays free unless a job says otherwise."""

SPOT_BILLABLE = (0.20, 0.35, 0.50)
"""Billable over training seconds of managed spot jobs: least, usual, most. Published savings are 54-81 %, 65 % in the
middle (bills of 2026-07 and 2026-09); AWS promises no number."""

NOT_ALLOWED = "not allowed on this platform"

MOST_INSTANCES = 64
"""The largest number of instances that Sagefit considers: few accounts have a higher quota."""

_SEVERITY: dict[Verdict, int] = {"FITS": 0, "RISKY": 1, "UNKNOWN": 2, "OOM": 3}
_GPU: Resource = "gpu"
_HOST: Resource = "host"
_RESOURCES: dict[Resource, str] = {"gpu": "GPU memory", "host": "host memory"}


def verdict(estimate: Estimate, usable_gib: float, head_room: float = HEAD_ROOM) -> Verdict:
    """FITS: the upper bound is within the budget, which is usable memory less head-room. RISKY: only the point is.

    What the allocator gives back before a run dies does not make a run OOM.
    """
    budget = usable_gib * (1 - head_room)
    if estimate.upper <= budget:
        return "FITS"
    return "RISKY" if estimate.least <= budget else "OOM"


class Candidate(NamedTuple):
    """Instances of one type for one workload. Memory is in GiB, per GPU and per host.

    A share is the upper bound over usable memory: 1.0 is full, and more than 1 - head-room does not fit. It is None
    when there is nothing to judge or no figure. ``unknown`` says why a verdict is UNKNOWN; ``too_few_gpus`` says that
    the job has more processes than GPUs. ``prediction`` is None on Trainium and without a model. ``price`` and
    `usd_per_hour` are None when no price is known; ``order_usd`` then gives the order of types. ``flags`` are for the
    reader.
    """

    instance: Instance
    instance_count: int
    placement: Placement
    prediction: Prediction | None
    gpu_share: float | None
    host_share: float | None
    verdict: Verdict
    binds: Resource
    unknown: str
    head_room: float
    price: Price | None
    order_usd: float
    spot: bool
    flags: tuple[str, ...]
    too_few_gpus: bool = False

    @property
    def instance_type(self) -> str:
        """The type's name, such as ``ml.g5.xlarge``."""
        return self.instance.ml_type

    @property
    def usable_gpu_gib(self) -> float | None:
        """Usable memory of each GPU."""
        return self.instance.usable_gpu_gib

    @property
    def usable_host_gib(self) -> float:
        """Usable memory of each host."""
        return self.instance.usable_host_gib

    @property
    def allowed(self) -> bool:
        """Whether the platform lets a job use this type."""
        return NOT_ALLOWED not in self.flags

    @property
    def usd_per_hour(self) -> float | None:
        """On-demand USD an hour for all instances together."""
        return self.price.usd_per_hour * self.instance_count if self.price else None

    @property
    def spot_usd_per_hour(self) -> tuple[float, float, float] | None:
        """What an hour of training is expected to cost on spot: least, usual, most. An expectation, no bound.

        SageMaker publishes no spot price: it bills fewer seconds at the on-demand rate. None when not on spot.
        """
        usd = self.usd_per_hour
        return spot_range(usd) if usd is not None and self.spot else None

    @property
    def quota(self) -> str:
        """The name of the quota that has to allow ``instance_count`` of them."""
        return quota_name(self.instance_type, "spot" if self.spot else "training")

    @property
    def reason(self) -> str:
        """The verdict in words: what binds, and by how much."""
        if self.verdict == "UNKNOWN" or self.too_few_gpus or self.prediction is None:
            return self.unknown
        gpu = self.binds == "gpu" and self.prediction.gpu
        estimate = gpu or self.prediction.host
        usable = self.usable_gpu_gib if gpu and self.usable_gpu_gib else self.usable_host_gib
        budget = f"{usable * (1 - self.head_room):.1f} GiB ({usable:.1f} usable, {self.head_room:.0%} kept free)"
        need = _RESOURCES[self.binds]
        if self.verdict == "FITS":
            return f"{need}: at most {estimate.upper:.1f} of {budget}"
        if self.verdict == "RISKY" and estimate.point > usable * (1 - self.head_room):
            return f"{need}: {estimate.point:.1f} of {budget}; it may live with {estimate.least:.1f}, and be slower"
        if self.verdict == "RISKY":
            return f"{need}: {estimate.point:.1f} of {budget}, but up to {estimate.upper:.1f} is possible"
        return f"{need}: {estimate.least:.1f} is more than {budget}"

    @property
    def order(self) -> tuple[bool, float, bool, int, int, str, int]:
        """Cheapest first. Types without a price come last, in the order of their prices in us-east-1.

        At the same price a published one comes before an estimated one, then fewer GPUs, then the newer generation
        (the higher number in the family's name), then the name.
        """
        return order_of(self.instance, self.price, self.order_usd, self.placement)


def order_of(
    instance: Instance, price: Price | None, usd: float, placement: Placement
) -> tuple[bool, float, bool, int, int, str, int]:
    """`Candidate.order` of a place that nothing was predicted for yet; ``usd`` is that of all its instances an hour."""
    return (
        price is None,
        usd,
        bool(price and price.estimated),
        placement.gpus,
        -instance.generation,
        instance.ml_type,
        placement.hosts,
    )


def spot_range(usd: float) -> tuple[float, float, float]:
    """What ``usd`` on demand is expected to be on spot: least, usual, most."""
    least, usual, most = SPOT_BILLABLE
    return usd * least, usd * usual, usd * most


def judge(
    prediction: Prediction | None, usable_host_gib: float, usable_gpu_gib: float | None, head_room: float, unknown: str
) -> tuple[Verdict, Resource]:
    """The worse of both verdicts, and the resource it comes from: at equal verdicts the one nearer to its limit.

    ``unknown`` makes a verdict UNKNOWN that would be FITS or RISKY; what is certainly too large stays OOM.
    """
    if prediction is None:
        return "UNKNOWN", "gpu"
    worst, binds = verdict(prediction.host, usable_host_gib, head_room), _HOST
    if prediction.gpu is not None and usable_gpu_gib is not None:
        of_gpu = verdict(prediction.gpu, usable_gpu_gib, head_room)
        shares = prediction.gpu.upper / usable_gpu_gib, prediction.host.upper / usable_host_gib
        if (_SEVERITY[of_gpu], shares[0]) >= (_SEVERITY[worst], shares[1]):
            worst, binds = of_gpu, _GPU
    return ("UNKNOWN", binds) if unknown and worst != "OOM" else (worst, binds)
