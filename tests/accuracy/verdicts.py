"""Runs of which only the outcome is known: did it fit."""

from __future__ import annotations

from dataclasses import dataclass

from accuracy.runs import placement_of, rows, workload_of
from sagefit.memory import predict
from sagefit.planning.candidate import verdict

HEAD_ROOM = 0.10


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
    """Every row of ``verdicts.csv`` whose configuration is known."""
    return [_judge(row) for row in rows("verdicts.csv") if not row["left_out"]]


def _judge(row: dict[str, str]) -> Judged:
    workload = workload_of(row)
    prediction = predict(workload, placement_of(row))
    if prediction is None or prediction.gpu is None:
        raise ValueError(f"{row['id']} has no prediction")
    said = verdict(prediction.gpu, float(row["usable_gib"]), HEAD_ROOM)
    rank = f" r{workload.lora_rank}" if workload.method != "full" else ""
    return Judged(
        id=row["id"],
        model=row["model"],
        configuration=(
            f"{workload.method}{rank} {workload.precision}, {workload.micro_batch} x {workload.sequence_length}, "
            f"{workload.stack}"
        ),
        gpu=f"{row['gpus']} x {row['gpu']}",
        happened=row["result"],
        point=prediction.gpu.point,
        upper=prediction.gpu.upper,
        verdict=said,
    )
