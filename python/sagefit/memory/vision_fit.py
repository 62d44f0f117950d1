"""The constants of vision models, from measured runs.

Two things are fitted and nothing else: device memory without tensors, for each GPU, and one factor on what the replayed
allocator reserves, for what the replay does not see. Both minimise the median of the absolute relative error. A
harness fits on all models but one and judges that one.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from sagefit.memory.overhead import peak
from sagefit.memory.vision import Constants, gpu_model, tensor_phases
from sagefit.memory.workload import Placement, Workload

FACTORS = [1 + percent / 100 for percent in range(13)]

Measurement = tuple[Workload, Placement, float]
"""A workload of one GPU, where it ran, and the bytes of device memory that were measured (nvidia-smi, NVML)."""


def fit(measured: Sequence[Measurement]) -> Constants:
    """The best constants; raises ValueError without measurements."""
    if not measured:
        raise ValueError("no measurements to fit")
    # What binds does not depend on the constants, which are the same for every phase.
    tensors = [(gpu_model(p), peak(tensor_phases(w, p)), size) for w, p, size in measured]
    return min((_with_factor(tensors, factor) for factor in FACTORS), key=lambda tried: tried[0])[1]


def _with_factor(runs: Sequence[tuple[str, float, float]], factor: float) -> tuple[float, Constants]:
    rest: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for gpu, tensors, size in runs:
        rest[gpu].append((size - factor * tensors, size))
    context = {gpu: max(0.0, _weighted_median(found)) for gpu, found in rest.items()}
    errors = [abs(left - context[gpu]) / size for gpu, found in rest.items() for left, size in found]
    return statistics.median(errors), Constants(
        context, statistics.mean(context.values()), max(context.values()), factor
    )


def _weighted_median(found: Sequence[tuple[float, float]]) -> float:
    """What minimises the sum of relative errors: runs that measured little say most about a constant."""
    ordered = sorted(found)
    half = sum(1 / size for _, size in ordered) / 2
    seen = 0.0
    for left, size in ordered:
        seen += 1 / size
        if seen >= half:
            return left
    return ordered[-1][0]
