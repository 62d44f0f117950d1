"""What would run a job for less: changes that keep its result, and changes that do not, each tried on the planner.

Without changes nothing is cheaper: `choose` takes the cheapest type that fits. So the question is which changes make a
cheaper type fit. All changes that keep the result are tried together first. Where even these are no cheaper, none of
them is; otherwise those are taken away again that are not needed for the price. Flash attention runs on newer GPUs
only, so all are tried without it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sagefit.job import Job
from sagefit.memory import Workload
from sagefit.planning.changes import Change, changes_of
from sagefit.planning.choose import Candidate
from sagefit.planning.market import cheapest, choices, one

#: Kinds of changes after which the same is learnt, but for rounding: how it is computed is changed, not what.
KEEPING = ("type", "base", "attention", "stack", "checkpointing", "batch", "workers", "dataset", "reference", "sampler")
#: Kinds after which nearly the same is learnt, and kinds after which something else is.
NEARLY = ("precision", "optimizer", "encoders")  # encoded once, an image is cropped and flipped once
CHANGING = (*NEARLY, "method", "length", "model")
WORTH = 0.95
"""A way is shown if it costs at most this share of the next dearer one."""
MOST = 4


@dataclass(frozen=True)
class Way:
    """Changes with which the job fits on ``fit`` for less, and whether they keep its result."""

    changes: tuple[Change, ...]
    fit: Candidate
    keeps_result: bool

    @property
    def text(self) -> str:
        """The changes, as they would be written."""
        return "; ".join(change.text for change in self.changes)

    @property
    def result(self) -> str:
        """What becomes of the result, in words."""
        if self.keeps_result:
            return "the same result"
        exact = all(change.kind in (*KEEPING, *NEARLY) for change in self.changes)
        return "nearly the same result" if exact else "another result"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that are changed, by name, with their new values."""
        found: dict[str, Any] = {}
        for change in self.changes:
            if change.kind == "encoders":
                found["encoders"] = change.workload["model"].encoders
                continue
            found |= {name: getattr(value, "name", value) for name, value in change.workload.items()}
            found |= {"instance_type": "auto"} if change.kind == "type" else {}
        return found


def ways(job: Job, workload: Workload, chosen: Candidate | None) -> list[Way]:
    """The ways to run a job for less than on ``chosen``, or at all where that is None; the cheapest last.

    Of the ways that keep the result there are the best single change and the cheapest; of those that do not, the best
    of each kind, where it is cheaper still. A type without a price is no way.
    """
    if workload.model is None or (chosen is not None and chosen.price is None):
        return []
    limit = _usd(chosen)
    if job.resources.instance_type == "auto" and not any(_is_less(c, limit) for c in choices(job, workload)):
        return []  # no type costs less
    search = _Search(job, workload)
    found = list(_keeping(search, limit))
    limit = min([limit, *(_usd(way.fit) for way in found)])
    found += sorted(_changing(search, limit), key=lambda way: -_usd(way.fit))
    return found[-MOST:]


def _keeping(search: _Search, limit: float) -> Iterator[Way]:
    if not (way := search.cheapest()) or not _is_less(way.fit, limit):
        return
    if len(way.changes) > 1:
        alone = [Way((each,), fit, keeps_result=True) for each in search.keeping if (fit := search.fit([each]))]
        best = min(alone, key=lambda single: _usd(single.fit), default=None)
        if best and _is_less(best.fit, limit) and _is_less(way.fit, _usd(best.fit)):
            yield best
    yield way


def _changing(search: _Search, limit: float) -> Iterator[Way]:
    """The best way of each kind that changes the result."""
    best: dict[str, Way] = {}
    for change in search.changing:
        way, before = search.cheapest(change), best.get(change.kind)
        if way and _is_less(way.fit, min(limit, _usd(before.fit)) if before else limit):
            best[change.kind] = way
    yield from best.values()


def _excludes(change: Change, other: Change) -> bool:
    """Whether one change makes the other mean nothing: a base in 4 bits has no other type."""
    return other.kind == "base" and change.kind == "method"


def _usd(fit: Candidate | None) -> float:
    return float("inf") if fit is None or fit.usd_per_hour is None else fit.usd_per_hour


def _is_less(fit: Candidate, usd: float) -> bool:
    return _usd(fit) < float("inf") and _usd(fit) <= WORTH * usd


class _Search:
    """Tries changes of one job."""

    def __init__(self, job: Job, workload: Workload) -> None:
        self._job, self._workload = job, workload
        found = list(changes_of(job, workload))
        self.keeping = [change for change in found if change.kind in KEEPING]
        self.changing = [change for change in found if change.kind in CHANGING]
        self.strongest = list({change.kind: change for change in self.keeping}.values())  # the last of a kind

    def fit(self, changes: Sequence[Change]) -> Candidate | None:
        """The cheapest that the changed job fits on."""
        return cheapest(*self._changed(changes))

    def _changed(self, changes: Sequence[Change]) -> tuple[Job, Workload]:
        changed: dict[str, Any] = {}
        for change in changes:
            changed |= change.workload
        job = self._job
        if any(change.kind == "type" for change in changes):
            resources = job.resources.model_copy(update={"instance_type": "auto"})
            job = job.model_copy(update={"resources": resources})
        return job, replace(self._workload, **changed)

    def cheapest(self, *always: Change) -> Way | None:
        """The cheapest way with some changes and whatever keeps the result beside them; None where there is none."""
        allowed = [change for change in self.strongest if not any(_excludes(each, change) for each in always)]
        older = [change for change in allowed if change.kind != "attention"]
        found: list[tuple[float, int, list[Change], Candidate]] = []
        for changes in [allowed, older] if len(older) < len(allowed) else [allowed]:
            if (changes or always) and (fit := self.fit([*always, *changes])):
                found.append((_usd(fit), len(found), changes, fit))
        if not found:
            return None
        _, _, changes, fit = min(found)
        needed = (*always, *self.least(changes, fit, *always))
        fit = self.fit(needed) or fit
        return Way(needed, fit, keeps_result=not always)

    def least(self, changes: Sequence[Change], best: Candidate, *always: Change) -> list[Change]:
        """Those of the changes that the price needs, each as mild as it may be."""
        kept = list(changes)
        for change in reversed(changes):
            without = [other for other in kept if other is not change]
            if self._fits_there([*always, *without], best):
                kept = without
        for index, change in enumerate(kept):
            for milder in (each for each in self.keeping if each.kind == change.kind):
                if self._fits_there([*always, *kept[:index], milder, *kept[index + 1 :]], best):
                    kept[index] = milder
                    break
        return kept

    def _fits_there(self, changes: Sequence[Change], best: Candidate) -> bool:
        job, workload = self._changed(changes)
        types = job.resources.instance_type
        may_use = types == "auto" or best.instance_type in ([types] if isinstance(types, str) else types)
        return may_use and one(job, workload, best.instance_type, best.instance_count).verdict == "FITS"
