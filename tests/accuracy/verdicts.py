"""What Sagefit would have said of runs on the GPU that they had, and what happened."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accuracy.lomo import Outcome
from accuracy.runs import placement_of, rows, workload_of
from job_files import auto_job
from sagefit.catalog import instances
from sagefit.memory import Estimate, Placement, Workload, predict
from sagefit.memory.read import described
from sagefit.planning.candidate import HEAD_ROOM, verdict


@dataclass(frozen=True)
class Judged:
    """What happened and what Sagefit would have said; memory of one GPU in GiB."""

    id: str
    model: str
    configuration: str
    gpu: str
    happened: str
    point: float
    upper: float
    verdict: str


def verdicts() -> list[Judged]:
    """Every row of ``verdicts.csv`` whose configuration is known, and of ``died.csv``, all of which ran out."""
    told = [
        _judge(row, workload_of(row), placement_of(row), float(row["usable_gib"]), row["result"])
        for row in rows("verdicts.csv")
        if not row["left_out"]
    ]
    return told + [_died(row) for row in rows("died.csv")]


def lived(found: Sequence[Outcome]) -> Counter[str]:
    """What would have been said of runs that ended, on the GPUs that they had, with the bounds of the outcomes.

    Runs on GPUs whose memory is not published are left out.
    """
    said: Counter[str] = Counter()
    for outcome in found:
        usable, prediction = usable_gib(outcome.run.placement.gpu), predict(outcome.run.workload, outcome.run.placement)
        if usable and prediction and prediction.gpu:
            upper = outcome.upper * outcome.run.needed() / outcome.run.measured
            said[verdict(replace(prediction.gpu, upper=upper), usable, HEAD_ROOM)] += 1
    return said


def usable_gib(gpu: str) -> float | None:
    """GiB that a job can use of a GPU, where its name (``A100-80GB``, ``T4``) or its model alone says how much."""
    model, _, size = gpu.replace("A800", "A100").partition("-")
    found = {
        each.usable_gpu_gib
        for each in instances().values()
        if each.accelerator == model
        and (not size or abs((each.accelerator_memory_gib or 0.0) - float(size.removesuffix("GB"))) < _ROUNDED)
    }
    return found.pop() if len(found) == 1 else None


_ROUNDED = 4  # an L40S has 48 GB, which are 44.7 GiB


def _died(row: dict[str, str]) -> Judged:
    workload = described(auto_job({"memory": json.loads(row["memory"]), "hyperparameters": None}))
    usable = usable_gib(row["gpu"])
    if usable is None:
        raise ValueError(f"{row['id']}: the memory of {row['gpu']} is not known")
    return _judge(row, workload, Placement(1, int(row["gpus"]), gpu=row["gpu"]), usable, "OOM")


def _judge(row: dict[str, str], workload: Workload, placement: Placement, usable: float, happened: str) -> Judged:
    estimate = _estimate(row["id"], workload, placement)
    rank = f" r{workload.lora_rank}" if workload.method != "full" else ""
    return Judged(
        id=row["id"],
        model=row["model"],
        configuration=(
            f"{workload.method}{rank} {workload.precision}, {workload.micro_batch} x {workload.sequence_length}, "
            f"{workload.stack}"
        ),
        gpu=f"{row['gpus']} x {row['gpu']}",
        happened=happened,
        point=estimate.point,
        upper=estimate.upper,
        verdict=verdict(estimate, usable, HEAD_ROOM),
    )


def _estimate(row_id: str, workload: Workload, placement: Placement) -> Estimate:
    prediction = predict(workload, placement)
    if prediction is None or prediction.gpu is None:
        raise ValueError(f"{row_id} has no prediction")
    return prediction.gpu
