"""The training instance types: one table, shared with the Terraform module.

``modules/training-job/instances.csv`` has a row for each value of botocore's ``TrainingInstanceType``;
`docs/catalog.md` tells where the figures come from.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from functools import cache, cached_property

from sagefit.catalog import store
from sagefit.paths import INSTANCES_CSV

TABLE_DATE = "2026-10-27"
"""When EC2 was asked for the figures of the table: older answers do not replace them."""

USABLE_HOST_SHARE = 0.925
"""Share of nominal memory that training can use: what the kernel and SageMaker's own agents leave.

SageMaker publishes no figure. Karpenter takes 7.5 % off (``vm-memory-overhead-percent``); observed are 97.7 % by
``slurmd -C`` on p5.48xlarge and about 97 % on g5 and g7e, so this errs on the safe side.
"""

_BEFORE_AMPERE = {"K80", "V100", "T4"}
_RETIRED = {"p2", "p3", "p3dn"}
_TRAINING_PLANS = {"p5e", "p5en", "p6-b200", "p6-b300", "p6e-gb200", "trn2"}


@dataclass(frozen=True)
class Instance:
    """One SageMaker training instance type.

    Memory is in GiB. ``accelerator_memory_gib`` is the nominal memory of one device, ``usable_gpu_gib`` the least
    capacity that CUDA was seen to report for one GPU; each is None where no figure is known.
    """

    ml_type: str
    vcpus: int
    memory_gib: float
    accelerator: str
    accelerator_count: int
    accelerator_memory_gib: float | None
    usable_gpu_gib: float | None
    nvme_gb: int
    efa: bool

    @cached_property
    def gpu_count(self) -> int:
        """NVIDIA GPUs; Trainium devices are not GPUs."""
        return 0 if self.trainium else self.accelerator_count

    @cached_property
    def usable_host_gib(self) -> float:
        """Memory of the host that training can use."""
        return self.memory_gib * USABLE_HOST_SHARE

    @cached_property
    def family(self) -> str:
        """``g5`` of ``ml.g5.xlarge``."""
        return self.ml_type.split(".")[1]

    @cached_property
    def size(self) -> str:
        """``xlarge`` of ``ml.g5.xlarge``."""
        return self.ml_type.split(".")[2]

    @cached_property
    def generation(self) -> int:
        """The number in the family's name: 5 of ``g5``, 7 of ``m7i-flex``. Within a kind, higher is newer."""
        return int(re.findall(r"\d+", self.family)[0])

    @cached_property
    def trainium(self) -> bool:
        """Whether its accelerators are Trainium devices, which need Neuron images."""
        return self.accelerator.startswith("Trainium")

    @cached_property
    def retired(self) -> bool:
        """Whether AWS has taken it off the EC2 lists; SageMaker's API still knows the name."""
        return self.family in _RETIRED

    @cached_property
    def training_plans(self) -> bool:
        """Whether it is sold mostly through SageMaker Training Plans, at a price of their own."""
        return self.family in _TRAINING_PLANS

    @cached_property
    def burstable(self) -> bool:
        """Whether it computes at full speed only part of the time."""
        return self.family == "t3"

    @cached_property
    def bf16(self) -> bool:
        """Whether its GPUs compute in bf16: from compute capability 8.0 on (CUDA C++ Programming Guide)."""
        return bool(self.gpu_count) and self.accelerator not in _BEFORE_AMPERE

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """What to know before choosing it."""
        known = {
            "retired": self.retired,
            "sold mostly through Training Plans": self.training_plans,
            "needs a Neuron image": self.trainium,
            "burstable: full speed only part of the time": self.burstable,
            "usable GPU memory unknown": bool(self.gpu_count) and self.usable_gpu_gib is None,
        }
        return tuple(flag for flag, holds in known.items() if holds)


@cache
def instances(*, packaged: bool = False) -> dict[str, Instance]:
    """All training instance types by name, with the figures of the last ``catalog refresh`` where they are newer.

    A refresh changes no accelerator: EC2 tells nominal memory only, and a wrong one for Trainium2. ``packaged`` leaves
    it aside, for what has to come out the same on every machine.
    """
    with INSTANCES_CSV.open(newline="", encoding="utf-8") as file:
        table = {row["ml_type"]: _instance(row) for row in csv.DictReader(file)}
    for snapshot in () if packaged else store.snapshots():  # oldest first
        if snapshot.date >= TABLE_DATE:
            for ml_type in snapshot.specs.keys() & table.keys():
                specs = snapshot.specs[ml_type]
                table[ml_type] = replace(
                    table[ml_type],
                    vcpus=specs.vcpus,
                    memory_gib=specs.memory_gib,
                    nvme_gb=specs.nvme_gb,
                    efa=specs.efa,
                )
    return table


def _instance(row: dict[str, str]) -> Instance:
    nominal, usable = row["accelerator_memory_gib"], row["accelerator_usable_gib"]
    return Instance(
        ml_type=row["ml_type"],
        vcpus=int(row["vcpus"]),
        memory_gib=float(row["memory_gib"]),
        accelerator=row["accelerator"],
        accelerator_count=int(row["accelerator_count"]),
        accelerator_memory_gib=float(nominal) if nominal else None,
        usable_gpu_gib=float(usable) if usable else None,
        nvme_gb=int(row["nvme_gb"]),
        efa=row["efa"] == "true",
    )
