"""What an instance-hour of training costs, with its source.

``prices.csv`` holds only figures that somebody published; nothing is computed. Spot has no price of its own:
SageMaker bills fewer seconds at this rate.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Price:
    """On-demand USD per instance-hour of training in one region, with where and when it was read."""

    usd_per_hour: float
    source: str
    date: str


def price(ml_type: str, region: str) -> Price | None:
    """The price of ``ml_type`` in ``region``, or None when none is known."""
    return _prices().get((ml_type, region))


@cache
def _prices() -> dict[tuple[str, str], Price]:
    with Path(__file__).with_name("prices.csv").open(newline="", encoding="utf-8") as file:
        return {
            (row["ml_type"], row["region"]): Price(float(row["usd_per_hour"]), row["source"], row["date"])
            for row in csv.DictReader(file)
        }
