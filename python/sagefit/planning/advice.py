"""When nothing fits: which changes would make the job fit. The planner tries each change; no table is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from sagefit.errors import DOES_NOT_FIT, SagefitError
from sagefit.job import Job
from sagefit.memory import Tabular, Workload, predict
from sagefit.paths import display
from sagefit.planning.candidate import MOST_INSTANCES
from sagefit.planning.changes import ELSEWHERE, Change, changes_of, to_do_in_the_script
from sagefit.planning.choose import Candidate
from sagefit.planning.market import cheapest

MOST = 8
PAIRED = 5


@dataclass(frozen=True)
class Advice:
    """Changes with which the job fits on ``fit``, and the GiB that they save compared with the nearest candidate."""

    changes: tuple[Change, ...]
    fit: Candidate
    gpu_gib: float
    host_gib: float

    @property
    def other_model(self) -> bool:
        """Whether a smaller model is among the changes."""
        return any(change.kind == "model" for change in self.changes)

    @property
    def text(self) -> str:
        """One line for people."""
        saved = ((self.gpu_gib, "per GPU"), (self.host_gib, "per host"))
        gain = ", ".join(
            f"{abs(gib):.1f} GiB {'less' if gib > 0 else 'more'} {where}" for gib, where in saved if abs(gib) >= 0.05
        )
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
    """What would make the job fit, most GiB first: single changes, else pairs of the best, else more changes together.

    Changes to another model come last, because another model also gives another result.
    """
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
        best.sort(key=lambda change: change.kind in ELSEWHERE)  # other instances only when all else is done
        for count in range(3, len(best) + 1):
            if not enough:
                attempt(*best[:count])
    return sorted(enough.values(), key=lambda a: (a.other_model, -a.gpu_gib - a.host_gib, a.text))[:MOST]


def _relief(change: Change, workload: Workload, near: Candidate) -> float:
    """GiB that a change saves in memories that are too full; infinite when only other instances can show it."""
    if change.kind in ELSEWHERE:
        return float("inf")
    before, after = near.prediction, predict(replace(workload, **change.workload), near.placement)
    if before is None or after is None:
        return 0.0
    full = 1 - near.head_room
    gib = before.host.upper - after.host.upper if (near.host_share or 0.0) > full else 0.0
    if before.gpu and after.gpu and (near.gpu_share or 0.0) > full:
        gib += before.gpu.upper - after.gpu.upper
    return gib


def _try(job: Job, workload: Workload, near: Candidate, changes: Sequence[Change]) -> Advice | None:
    changed: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for change in changes:
        changed |= change.workload
        resources |= {"instance_type": "auto"} if change.kind == "type" else {}
        resources |= {"instance_count": change.instance_count} if change.instance_count else {}
    other = job.model_copy(update={"resources": job.resources.model_copy(update=resources)}) if resources else job
    fit = cheapest(other, replace(workload, **changed))
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


def none_so_large(workload: Workload) -> str:
    """Why a job has no candidates."""
    return f"memory.world_size: {MOST_INSTANCES} instances of one type have fewer than {workload.world_size} GPUs"


def nothing_helps(job: Job, workload: Workload, found: Sequence[Candidate]) -> str:
    """The line for a job that does not fit with any change, or with all of them together."""
    if not found:
        return none_so_large(workload)
    tried = ", ".join(dict.fromkeys(change.kind for change in changes_of(job, workload)))
    what = f"nothing that was tried makes it fit: {tried}" if tried else "there is nothing to try that makes it fit"
    return what + ("" if isinstance(workload.model, Tabular) else "; tensor or pipeline parallelism is not planned")


def does_not_fit(job: Job, workload: Workload, found: Sequence[Candidate]) -> SagefitError:
    """The error of a job for which no instance fits, with what would help as its hint."""
    if workload.model is None:
        return _not_known(job, workload)
    near = nearest(found)
    where = f"{display(job.path)}: resources.instance_type"
    why = f"; nearest is {near.instance_type}, {near.verdict} ({near.reason})" if near else ""
    why = why if found else f"; {none_so_large(workload)}"
    helpful = advise(job, workload, found)
    remedies = (
        ["what would make it fit:", *(f"  {advice.text}" for advice in helpful)]
        if helpful
        else [nothing_helps(job, workload, found)]
    )
    if too := to_do_in_the_script(change for advice in helpful for change in advice.changes):
        remedies.append(too)
    if near and near.verdict == "RISKY" and near.allowed and not near.too_few_gpus:
        remedies.append(f"or memory.accept_risky: true, to run it on {near.instance_type} all the same")
    return SagefitError(
        f"{where}: no instance that the job may use is sure to hold it{why}",
        hint="\n".join([*remedies, "or write the attempts out, to run them whatever is predicted"]),
        exit_code=DOES_NOT_FIT,
    )


def _not_known(job: Job, workload: Workload) -> SagefitError:
    """The error of a job whose ``memory.trace`` should say what is trained, but does not."""
    from sagefit.console import command  # loads rich, which other jobs do not need

    where = f"{display(job.path)}: resources.instance_type"
    return SagefitError(
        f"{where}: to choose an instance, Sagefit has to know what is trained: {'; '.join(workload.notes)}",
        hint=f"run {command('trace', job.reference)}, or add memory.model, or give resources.instance_type one type",
    )
