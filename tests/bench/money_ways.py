"""Four ways to deal with a GPU that is too small, and what each is billed for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from money_jobs import Trial

from sagefit.catalog import Instance, instances, price
from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.errors import DOES_NOT_FIT, SagefitError
from sagefit.planning import plan

DEFAULT = "ml.g5.xlarge"
RETRIES = 3
HOURS = 4.0
TO_FAIL = 0.10  # of the time a run would take


@dataclass(frozen=True)
class Tried:
    """One attempt: where, and whether it had enough memory."""

    instance_type: str
    need_gib: float
    fits: bool

    def hours(self, to_fail: float) -> float:
        """How long its instance is billed."""
        return HOURS if self.fits else HOURS * to_fail

    def usd(self, to_fail: float) -> float:
        """What that costs."""
        return usd_per_hour(self.instance_type) * self.hours(to_fail)


Strategy = Callable[[Trial], list[Tried]]


def sagefit(trial: Trial, *, accept_risky: bool = False) -> list[Tried]:
    """The attempts of ``attempts: auto``, along the edges for GPU memory; none where Sagefit refuses the job."""
    job, memory = trial.job, trial.job.memory
    if memory and accept_risky:
        job = job.model_copy(update={"memory": memory.model_copy(update={"accept_risky": True})})
    try:
        attempts = {attempt.name: attempt for attempt in plan(job).attempts}
    except SagefitError as error:
        if error.exit_code != DOES_NOT_FIT:
            raise
        return []
    name: str | None = next(iter(attempts))
    tried: list[Tried] = []
    while name and not (tried and tried[-1].fits):
        attempt = attempts[name]
        tried.append(_try(trial, attempt.instance_type, dict(attempt.hyperparameters)))
        name = attempt.next.get("gpu_memory")
    return tried


def doubling(trial: Trial) -> list[Tried]:
    """From the default, then the cheapest type with at least twice the memory per GPU, until it fits."""
    tried = [_try(trial, DEFAULT)]
    while not tried[-1].fits and (larger := _twice(tried[-1].instance_type)):
        tried.append(_try(trial, larger))
    return tried


def the_same(trial: Trial) -> list[Tried]:
    """The default again and again."""
    first = _try(trial, DEFAULT)
    return [first] if first.fits else [first] * (1 + RETRIES)


STRATEGIES: dict[str, Strategy] = {
    "Sagefit": sagefit,
    "Sagefit, `accept_risky`": partial(sagefit, accept_risky=True),
    "twice the memory each time": doubling,
    f"the same instance, {RETRIES} retries": the_same,
}


def _try(trial: Trial, instance_type: str, hyperparameters: dict[str, object] | None = None) -> Tried:
    instance = instances()[instance_type]
    need = trial.need_gib(instance, hyperparameters)
    return Tried(instance_type, need, need <= usable_gib(instance))


@lru_cache(maxsize=64)
def _twice(instance_type: str) -> str | None:
    enough = 2 * usable_gib(instances()[instance_type])
    larger = [
        name
        for name, each in instances().items()
        if usable_gib(each) >= enough and price(name, REFERENCE_REGION, packaged=True)
    ]
    return min(larger, key=usd_per_hour, default=None)


def usable_gib(instance: Instance) -> float:
    """Memory of one GPU that a job can use; 0 where there is none, or no figure."""
    return instance.usable_gpu_gib or 0.0


@lru_cache(maxsize=256)
def usd_per_hour(instance_type: str) -> float:
    """The packaged on-demand price in the reference Region."""
    known = price(instance_type, REFERENCE_REGION, packaged=True)
    if known is None:
        raise ValueError(f"no price of {instance_type}")
    return known.usd_per_hour


def least_usd(trial: Trial) -> float | None:
    """USD of the job on the cheapest instance that would have held it, as it is; None where none would have."""
    return min((HOURS * usd for usd in _that_hold(trial)), default=None)


def _that_hold(trial: Trial) -> Iterator[float]:
    """The price an hour of each instance with a GPU that has enough memory."""
    for name, each in instances().items():
        if (
            usable_gib(each)
            and price(name, REFERENCE_REGION, packaged=True)
            and trial.need_gib(each) <= usable_gib(each)
        ):
            yield usd_per_hour(name)


@dataclass(frozen=True)
class Sum:
    """What a strategy did with several jobs. ``lost`` were refused, though some instance would have held them."""

    done: int
    refused: int
    lost: int
    failed_attempts: int
    wasted_usd: float
    total_usd: float
    least_usd: float
    """What the cheapest instances that would have held the jobs that ended well would have cost."""


def add_up(walks: Sequence[list[Tried]], least: Sequence[float | None], to_fail: float = TO_FAIL) -> Sum:
    """Sum over jobs with `least_usd` of each; what an attempt without an end cost is wasted."""
    lost = [tried for walk in walks for tried in walk if not tried.fits]
    return Sum(
        done=sum(walk[-1].fits for walk in walks if walk),
        refused=sum(not walk for walk in walks),
        lost=sum(not walk and usd is not None for walk, usd in zip(walks, least, strict=True)),
        failed_attempts=len(lost),
        wasted_usd=sum(tried.usd(to_fail) for tried in lost),
        total_usd=sum(tried.usd(to_fail) for walk in walks for tried in walk),
        least_usd=sum(usd or 0.0 for walk, usd in zip(walks, least, strict=True) if walk and walk[-1].fits),
    )
