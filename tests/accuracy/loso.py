"""Leave one source out: how good point and bound are for runs of a project that neither has seen.

The bound of each run comes from the runs of all other projects, and what was read off a project's own runs is taken
away: `lomo.FITTED` becomes an unknown stack, and vision models get the constants that other projects' runs give.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from accuracy import lomo
from accuracy.lomo import Outcome, Score
from accuracy.runs import Run, rows
from sagefit.catalog import instances
from sagefit.job.memory_model import Stack
from sagefit.memory import GIB, Vision, bounds, forget, vision, vision_fit
from sagefit.memory.stacks import PROFILES
from sagefit.planning.candidate import HEAD_ROOM

MIB = 2**20
# Memory of a process without tensors that others publish, on an A100 and on a V100.
CONTEXTS = (1237 * MIB, 1343 * MIB)


def outcomes(runs: Sequence[Run]) -> list[Outcome]:
    """Every run as predicted without its source."""
    found = [each for project in {run.project for run in runs} for each in outcomes_of(project, runs)]
    return sorted(found, key=lambda outcome: outcome.run.id)


def outcomes_of(project: str, runs: Sequence[Run], stack: Stack = "unknown") -> list[Outcome]:
    """The runs of one project as predicted without it; ``stack`` is what one without a profile is taken for."""
    found = []
    with without(project, runs):
        for run in (run for run in runs if run.project == project):
            new = unseen(run, stack)
            found.append(Outcome(run, new.comparable(), new.bound(bounds.gpu_ratio(run.workload)), new.beside()))
    return found


def unseen(run: Run, stack: Stack = "unknown") -> Run:
    """The run as a job file describes it to a planner that lacks the profile of its stack (`without`)."""
    if run.workload.stack in PROFILES:
        return run
    return replace(run, workload=replace(run.workload, stack=stack))


@contextmanager
def without(project: str, runs: Sequence[Run]) -> Iterator[None]:
    """The planner as it would be if nobody had seen the runs of ``project``: bounds of the other ``runs`` alone."""
    rest = [run for run in runs if run.project != project]
    ratios, profiles, constants, load = lomo.ratios(rest), dict(PROFILES), vision.CONSTANTS, bounds.load
    try:
        bounds.load = lambda: ratios  # type: ignore[assignment]
        if project == lomo.FITTED:
            del PROFILES[lomo.FITTED]
        vision.CONSTANTS = _constants(rest)
        forget()
        yield
    finally:
        PROFILES.update(profiles)
        vision.CONSTANTS, bounds.load = constants, load
        forget()


def _constants(rest: Sequence[Run]) -> vision.Constants:
    """The constants of vision models from the classifiers of other sources."""
    seen = [run for run in rest if lomo.gpu_class(run) == "classification"]
    if not seen:
        return vision.CONSTANTS
    fitted = vision_fit.fit([(run.workload, run.placement, run.measured * GIB) for run in seen])
    most = max([fitted.most, *(float(row["mib"]) * MIB for row in rows("contexts.csv"))])
    return replace(fitted, other=statistics.mean([*fitted.context.values(), *CONTEXTS]), most=most)


# --- the decision -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """What choosing a GPU by the bound, with the usual head-room, comes to: shares of runs.

    Steps are sizes of GPU memory that SageMaker's instances have: ``further`` is two or more sizes larger than the
    smallest that would have held the run, or none at all.
    """

    small: float
    exact: float
    one: float
    further: float


def decision(found: Sequence[Outcome]) -> Decision:
    """The decisions for runs that some GPU holds."""
    sizes = sorted({each.usable_gpu_gib for each in instances().values() if each.usable_gpu_gib})
    steps = []
    for outcome in found:
        needed = outcome.run.needed()
        least = next((at for at, size in enumerate(sizes) if size >= needed), None)
        if least is None:
            continue
        bound = outcome.upper * needed / outcome.run.measured
        chosen = next((at for at, size in enumerate(sizes) if size * (1 - HEAD_ROOM) >= bound), len(sizes) + 1)
        steps.append(chosen - least)
    shares = [sum(map(holds, steps)) / len(steps) for holds in (_small, _exact, _one, _further)]
    return Decision(*shares)


def _small(step: int) -> bool:
    return step < 0


def _exact(step: int) -> bool:
    return step == 0


def _one(step: int) -> bool:
    return step == 1


def _further(step: int) -> bool:
    return step > 1


# --- groups -----------------------------------------------------------------------------------------------------------


def by(found: Sequence[Outcome], key: Callable[[Run], str]) -> dict[str, list[Outcome]]:
    """Outcomes by what ``key`` says of their run."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        groups[key(outcome.run)].append(outcome)
    return dict(sorted(groups.items()))


def family(run: Run) -> str:
    """What the planner's formulas or traces it is predicted by."""
    if isinstance(run.workload.model, Vision):
        return "vision"
    return "diffusion" if lomo.gpu_class(run).startswith("diffusion") else "transformers"


def mean(scores: Sequence[Score]) -> tuple[float, float]:
    """Median error and share above the bound as means over sources, each of which counts once."""
    return statistics.mean(each.median for each in scores), statistics.mean(each.above for each in scores)
