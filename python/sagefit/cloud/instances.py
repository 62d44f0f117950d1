"""Instance types, from the table the Terraform module reads too."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from sagefit.paths import INSTANCES_CSV


@dataclass(frozen=True)
class Instance:
    """What the embedded cloud needs to know of an instance type."""

    name: str
    vcpus: int
    memory_gib: float
    accelerators: int


@cache
def instances() -> dict[str, Instance]:
    """All known types by name."""
    with INSTANCES_CSV.open(newline="") as file:
        rows = csv.DictReader(file)
        found = (
            Instance(row["ml_type"], int(row["vcpus"]), float(row["memory_gib"]), int(row["accelerator_count"] or 0))
            for row in rows
        )
        return {instance.name: instance for instance in found}
