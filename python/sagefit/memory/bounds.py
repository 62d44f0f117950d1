"""How far a measurement may lie above the point estimate.

A job is of a source that nobody measured, so sources count and not runs. Of each source the conformal 95 % quantile of
measured over predicted is taken (split-conformal: Vovk et al. 2005; Lei et al. 2018), and the bound is a conformal
quantile of these: with fewer than nine sources what the worst of them would have needed. The next source, if it is like
them, stays within it with a chance of K in K + 1 for K sources. It is made for each family, method and stack with
enough runs of enough sources, else for wider groups. A family of few sources has at least a margin.

``bounds.json`` holds the bounds, and how much is behind them; ``make bench-memory`` computes them from the published
runs in ``tests/accuracy/``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sagefit.memory.vision_models import resolve
from sagefit.memory.workload import Diffusion, Measured, Tabular, Traced, Transformer, Vision, Workload

LEVEL = 0.95
OF_SOURCES = 0.9
# What a group needs for a bound of its own; with fewer, the 95 % quantile is the largest of its runs or unknown.
ENOUGH = 20  # runs
MODELS = 3
SOURCES = 3
# No measured host memory beside a GPU was found, so these are margins and not quantiles.
HOST = 1.15
TABULAR = 1.3
TRACED = 1.17  # of 48 published runs of 10 vision models; transformers have none, and the same margin
MEASURED = 1.1  # two runs of one job differ by 5 to 10 % through the caching allocator alone
# The least bound of a family while it has fewer than `SOURCES`: that of traced runs, and more for detectors and
# segmenters, whose trainers count memory differently.
MARGINS = {"transformer": 1.3, "vision": TRACED, "diffusion": TRACED, "detection": 1.3, "segmentation": 1.3}
# Of a detector or segmenter whose step was not traced: a factor on its backbone.
UNTRACED = {"detection": "detection by backbone", "segmentation": "segmentation by backbone"}


class Bound(NamedTuple):
    """The bound of a group, and what was measured of it. ``ratio`` is None where that is too little for a bound."""

    ratio: float | None
    runs: int
    models: int
    sources: int

    @property
    def few(self) -> bool:
        """Whether too few sources are behind it, so that it is at least a margin."""
        return self.sources < SOURCES


_NOTHING = Bound(None, 0, 0, 0)
_FAMILIES = {"classification": "vision"}


@dataclass(frozen=True)
class Evidence:
    """What is behind the bound of a workload: its ``ratio``, and the ``group`` whose measured runs it comes from.

    ``own_group`` is the narrowest that the workload belongs to, with ``own`` runs; the same where these are enough.
    """

    ratio: float
    group: str
    behind: Bound
    own_group: str
    own: Bound


def groups(workload: Workload) -> list[str]:
    """The groups a workload belongs to, the narrowest first; the last is its family, which always has a bound."""
    model = workload.model
    if isinstance(model, Vision):
        found = resolve(model)
        return [UNTRACED[found.task] if not found.traced else _FAMILIES.get(found.task, found.task)]
    if isinstance(model, Diffusion):
        return [f"diffusion/{workload.method}", "diffusion"]
    if isinstance(model, Transformer):
        family = "encoder" if model.architecture == "encoder" else "decoder"
        method = f"{family}/{workload.method}"
        if workload.objective != "supervised":
            return [f"{method}/{workload.objective}", method, "transformer"]
        if model.tower:
            return [f"{method}/vision-language", method, "transformer"]
        if workload.method == "lora" and workload.base_dtype == "8-bit":
            return [f"{method}/8-bit", method, "transformer"]
        return [f"{method}/{workload.stack}", method, "transformer"]
    return []


def quantile(ratios: Iterable[float], level: float = LEVEL) -> float:
    """The conformal quantile: the ceil((n + 1) * level)-th smallest ratio, or the largest when n is too small."""
    ordered = sorted(ratios)
    return ordered[min(len(ordered), math.ceil((len(ordered) + 1) * level)) - 1]


def by_source(ratios: Iterable[Sequence[float]]) -> float:
    """The bound that holds for sources: the quantile of what each would have needed, one sequence of ratios a source.

    Hierarchical conformal prediction with the source as the group (Dunn, Wasserman and Ramdas 2023).
    """
    return quantile((quantile(each) for each in ratios), OF_SOURCES)


def gpu_ratio(workload: Workload, table: Mapping[str, float] | None = None) -> float:
    """Upper bound over point estimate for the memory of one GPU, at least 1.

    The workload's own group may have a narrower bound than all runs together; a group of other workloads may not. An
    unknown stack gets the widest bound of its method, as it gets the worst point.
    """
    if isinstance(workload.model, Measured):
        return MEASURED
    if isinstance(workload.model, Traced):
        return TRACED
    return _decided(workload, load() if table is None else table)[0]


def _decided(workload: Workload, known: Mapping[str, float]) -> tuple[float, str]:
    """The ratio of a workload, and the group that it comes from."""
    own, *borrowed = groups(workload)
    if own in known:
        return max(1.0, known[own]), own
    if workload.stack == "unknown" and borrowed:
        borrowed += [group for group in known if group.startswith(borrowed[0])]
    return max([(1.0, ""), *((known[group], group) for group in borrowed if group in known)])


def host_ratio(workload: Workload) -> float:
    """Upper bound over point estimate for host memory that holds no tensors of the model."""
    if isinstance(workload.model, Measured):
        return MEASURED
    return TABULAR if isinstance(workload.model, Tabular) else HOST


def cpu_group(workload: Workload) -> str:
    """The group of a workload that the CPU trains: its measured runs are too few for finer ones."""
    model = workload.model
    vision = isinstance(model, Diffusion | Vision) or (isinstance(model, Traced) and model.family == "vision")
    return "cpu/vision" if vision else "cpu/transformer"


def cpu_ratio(workload: Workload, table: Mapping[str, float] | None = None) -> float:
    """Upper bound over point estimate for the memory of a host whose CPU trains.

    At least that of other host memory: the runs behind the quantile are of small models and of one machine.
    """
    known = load() if table is None else table
    return max(HOST, known[cpu_group(workload)])


def evidence(workload: Workload, *, on_gpu: bool) -> Evidence | None:
    """What is behind the bound of the memory that holds the model; None where it is a margin, and no quantile."""
    measured = table()
    if not isinstance(workload.model, Transformer | Vision | Diffusion):
        return None
    if not on_gpu:
        group = cpu_group(workload)
        return Evidence(cpu_ratio(workload), group, measured[group], group, measured[group])
    ratio, group = _decided(workload, load())
    own = groups(workload)[0]
    return Evidence(ratio, group, measured[group], own, measured.get(own, _NOTHING)) if group else None


@cache
def table() -> dict[str, Bound]:
    """What was measured of each group of workloads."""
    with Path(__file__).with_name("bounds.json").open(encoding="utf-8") as file:
        return {group: Bound(**row) for group, row in json.load(file).items()}


@cache
def load() -> dict[str, float]:
    """The bounds that the planner uses, by group."""
    return {group: bound.ratio for group, bound in table().items() if bound.ratio is not None}
