"""The training instance types: one table, shared with the Terraform module.

``modules/training-job/instances.csv`` has a row for each value of botocore's ``TrainingInstanceType``;
`docs/catalog.md` tells where the figures come from.
"""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from functools import cache

from sagefit.paths import INSTANCES_CSV


@dataclass(frozen=True)
class Instance:
    """One SageMaker training instance type.

    Memory is in GiB. ``accelerator_memory_gib`` is per device, and for NVIDIA GPUs the least capacity that
    CUDA was seen to report; it is None where no figure is known.
    """

    ml_type: str
    vcpus: int
    memory_gib: float
    accelerator: str
    accelerator_count: int
    accelerator_memory_gib: float | None
    nvme_gb: int
    efa: bool

    @property
    def gpu_count(self) -> int:
        """NVIDIA GPUs; Trainium devices are not GPUs."""
        return 0 if self.accelerator.startswith("Trainium") else self.accelerator_count


@cache
def instances() -> dict[str, Instance]:
    """All training instance types by name."""
    with INSTANCES_CSV.open(newline="", encoding="utf-8") as file:
        return {row["ml_type"]: _instance(row) for row in csv.DictReader(file)}


def suggest(ml_type: str) -> str | None:
    """The known instance type that looks most like ``ml_type``."""
    close = difflib.get_close_matches(ml_type, instances(), n=1, cutoff=0.6)
    return close[0] if close else None


def _instance(row: dict[str, str]) -> Instance:
    memory = row["accelerator_memory_gib"]
    return Instance(
        ml_type=row["ml_type"],
        vcpus=int(row["vcpus"]),
        memory_gib=float(row["memory_gib"]),
        accelerator=row["accelerator"],
        accelerator_count=int(row["accelerator_count"]),
        accelerator_memory_gib=float(memory) if memory else None,
        nvme_gb=int(row["nvme_gb"]),
        efa=row["efa"] == "true",
    )
