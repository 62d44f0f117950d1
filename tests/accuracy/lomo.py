"""Leave one model out: how good point and bound are for a model that neither has seen.

The bound of each model is the conformal quantile of all other models' runs, and the one constant that was read off a
single stack's runs (`FITTED`) is chosen again without it.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from accuracy import by_backbone
from accuracy.runs import Run, rows
from sagefit.job.memory_model import Stack
from sagefit.memory import GIB, Diffusion, Transformer, Vision, bounds, forget, vision, vision_fit
from sagefit.memory.overhead import peak
from sagefit.memory.stacks import PROFILES

FITTED: Stack = "ms-swift"
CANDIDATES = range(14, 46, 2)


@dataclass(frozen=True)
class Outcome:
    """A run with what was predicted for it, in GiB, comparable with what was measured."""

    run: Run
    point: float
    upper: float
    beside: float = 0.0  # of ``upper``, what is added to the point and its ratio

    @property
    def error(self) -> float:
        """Absolute error of the point, as a share of the measured value."""
        return abs(self.point / self.run.measured - 1)


@dataclass(frozen=True)
class Score:
    """What a group of outcomes shows; shares and ratios."""

    runs: int
    models: int
    median: float
    p90: float
    above: float
    upper: float


def outcomes(runs: Sequence[Run], known: Sequence[Run]) -> list[Outcome]:
    """Every run as predicted without its model; bounds come from the ``known`` runs of all other models."""
    found: list[Outcome] = []
    for model in sorted({run.model for run in runs}):
        held = [run for run in runs if run.model == model]
        rest = [run for run in known if run.model != model]
        with _fitted_without([run for run in runs if run.model != model], held):
            table = ratios(rest)
            for run in held:
                found.append(Outcome(run, run.comparable(), run.bound(bounds.gpu_ratio(run.workload, table))))
    return sorted(found, key=lambda outcome: outcome.run.id)


def vision_outcomes(runs: Sequence[Run]) -> list[Outcome]:
    """Every vision run with constants fitted without its model, and a bound from such points of the other models."""
    points: dict[str, float] = {}
    beside: dict[str, float] = {}
    for model in {run.model for run in runs}:
        constants = vision_fit.fit([_measurement(run) for run in runs if run.model != model])
        for run in runs:
            if run.model == model:
                points[run.id] = peak(vision.gpu_phases(run.workload, run.placement, constants)) / GIB
                beside[run.id] = vision.beside(run.placement, constants) / GIB
    ratio = {run.id: run.measured / points[run.id] for run in runs}
    bound = {
        model: bounds.quantile(ratio[run.id] for run in runs if run.model != model)
        for model in {run.model for run in runs}
    }
    return [Outcome(run, points[run.id], points[run.id] * max(1.0, bound[run.model]) + beside[run.id]) for run in runs]


def cpu_outcomes(runs: Sequence[Run]) -> list[Outcome]:
    """Every run on a CPU with the bound of the other models of its group; the points are those of the planner."""
    found = []
    for model in sorted({run.model for run in runs}):
        table = cpu_ratios([run for run in runs if run.model != model])
        for run in runs:
            if run.model == model:
                point = run.comparable()
                found.append(Outcome(run, point, point * bounds.cpu_ratio(run.workload, table)))
    return sorted(found, key=lambda outcome: outcome.run.id)


def gpu_class(run: Run) -> str:
    """The class of training that a run of a GPU belongs to, as its page lists them."""
    workload, several = run.workload, run.placement.gpus > 1
    model = workload.model
    if isinstance(model, Vision):
        return vision.resolve(model).task
    if isinstance(model, Diffusion):
        return f"diffusion/{workload.method}"
    if several:
        return "DDP" if workload.sharding == "none" else "FSDP"
    family = model.architecture if isinstance(model, Transformer) else ""
    return f"{family}/{workload.method}" + ("/hf-liger" if workload.stack == "hf-liger" else "")


def gpu_scores(found: Sequence[Outcome]) -> dict[str, Score]:
    """Outcomes of runs on a GPU by class, and of those whose configuration was drawn by lot."""
    members: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        members[gpu_class(outcome.run)].append(outcome)
    drawn = [outcome for outcome in found if outcome.run.drawn]
    return {
        **{name: score(each) for name, each in sorted(members.items())},
        **({"drawn by lot": score(drawn)} if drawn else {}),
        "all": score(found),
    }


def source_scores(found: Sequence[Outcome]) -> dict[str, Score]:
    """Outcomes by source, and of all of them."""
    members: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        members[outcome.run.source].append(outcome)
    return {**{name: score(each) for name, each in sorted(members.items())}, "all": score(found)}


def at_first_sight(table: str, runs: Sequence[Run]) -> list[Outcome]:
    """The runs of a table as the planner predicted them before anybody had looked at them.

    A prediction that was made before counts once; it is kept in ``first_sight.csv`` and never made again.
    """
    kept = {row["id"]: row for row in rows("first_sight.csv") if row["rows"] == table}
    seen = [(run, kept[run.id]) for run in runs if run.id in kept]
    return [Outcome(run, float(row["point_gib"]), float(row["bound_gib"])) for run, row in seen]


def gpu_outcomes(runs: Sequence[Run]) -> list[Outcome]:
    """Every run as the planner predicts it, with the bounds that it has."""
    return [Outcome(run, run.comparable(), run.bound(bounds.gpu_ratio(run.workload))) for run in runs]


def cpu_ratios(runs: Sequence[Run]) -> dict[str, float]:
    """The bound of each group of runs on a CPU."""
    groups = sorted({_cpu_group(run) for run in runs})
    return {group: round(bounds.quantile(run.ratio for run in runs if _cpu_group(run) == group), 3) for group in groups}


def cpu_scores(found: Sequence[Outcome]) -> dict[str, Score]:
    """Outcomes of runs on a CPU by group."""
    groups = sorted({_cpu_group(outcome.run) for outcome in found})
    return {group: score([o for o in found if _cpu_group(o.run) == group]) for group in groups}


def _cpu_group(run: Run) -> str:
    return bounds.cpu_group(run.workload)


def _measurement(run: Run) -> vision_fit.Measurement:
    return run.workload, run.placement, run.measured * GIB


def ratios(runs: Iterable[Run]) -> dict[str, float]:
    """The bound of each group that has enough runs of enough sources, and of each family.

    A detector or segmenter whose step was not traced has its family's bound times that of a factor on its backbone.
    """
    members = _members(runs)
    found = {group: bounds.by_source(_by_project(own)) for group, own in members.items() if _suffice(own)}
    for family, margin in bounds.MARGINS.items():
        own = members.get(family, [])
        measured = bounds.by_source(_by_project(own)) if own else 1.0
        few = len({run.project for run in own}) < bounds.SOURCES
        found[family] = max(margin, measured) if few else measured
    for task, group in bounds.UNTRACED.items():
        found[group] = found[task] * bounds.by_source(by_backbone.ratios(task).values())
    return {group: round(ratio, 3) for group, ratio in sorted(found.items())}


def _suffice(runs: Sequence[Run]) -> bool:
    """Whether a group has a bound of its own."""
    models, projects = {run.model for run in runs}, {run.project for run in runs}
    return len(runs) >= bounds.ENOUGH and len(models) >= bounds.MODELS and len(projects) >= bounds.SOURCES


def _by_project(runs: Iterable[Run]) -> list[list[float]]:
    """Measured over predicted, source by source."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        found[run.project].append(run.ratio)
    return list(found.values())


def table(on_gpu: Sequence[Run], on_cpu: Sequence[Run]) -> dict[str, bounds.Bound]:
    """The bound of each group, and what was measured of it, also where that is too little for a bound."""
    members = dict(_members(on_gpu))
    for run in on_cpu:
        members.setdefault(_cpu_group(run), []).append(run)
    known = cpu_ratios(on_cpu) | ratios(on_gpu)

    def bound(group: str) -> bounds.Bound:
        found = members.get(group, [])
        models, projects = {run.model for run in found}, {run.project for run in found}
        return bounds.Bound(known.get(group), len(found), len(models), len(projects))

    return {group: bound(group) for group in sorted({*members, *known})}


def scores(found: Iterable[Outcome]) -> dict[str, Score]:
    """Outcomes by group, the widest groups included."""
    members: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        for group in bounds.groups(outcome.run.workload):
            members[group].append(outcome)
    return {group: score(each) for group, each in sorted(members.items())}


def score(found: Sequence[Outcome]) -> Score:
    """Median and 90 % quantile of the error, share of runs above the bound, median of bound over measured."""
    errors = sorted(outcome.error for outcome in found)
    return Score(
        runs=len(found),
        models=len({outcome.run.model for outcome in found}),
        median=statistics.median(errors),
        p90=errors[int(0.9 * (len(errors) - 1))],
        above=sum(outcome.run.measured > outcome.upper for outcome in found) / len(found),
        upper=statistics.median(outcome.upper / outcome.run.measured for outcome in found),
    )


def rule_errors(runs: Sequence[Run], rule: Callable[..., float]) -> tuple[float, float, float]:
    """Median error, 90 % quantile and share below the measured value of a rule that others use."""
    ratio = [rule(run.workload, run.placement) / run.measured for run in runs]
    errors = sorted(abs(each - 1) for each in ratio)
    below = sum(each < 1 for each in ratio) / len(ratio)
    return statistics.median(errors), errors[int(0.9 * (len(errors) - 1))], below


def _members(runs: Iterable[Run]) -> dict[str, list[Run]]:
    members: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        for group in bounds.groups(run.workload):
            members[group].append(run)
    return members


@contextmanager
def _fitted_without(rest: Sequence[Run], held: Sequence[Run]) -> Iterator[None]:
    """Choose the fitted constant on the other models, when the held-out model has runs of that stack."""
    if all(run.workload.stack != FITTED for run in held):
        yield
        return
    kept = PROFILES[FITTED]
    known = [run for run in rest if run.workload.stack == FITTED]

    def wrong(logits: int) -> float:
        _use(logits)
        return statistics.median(abs(run.ratio - 1) for run in known)

    def _use(logits: int) -> None:
        PROFILES[FITTED] = replace(kept, logits=logits, logits_checkpointed=logits)
        forget()

    try:
        _use(min(CANDIDATES, key=wrong))
        yield
    finally:
        PROFILES[FITTED] = kept
        forget()
