"""What an instance-hour of training costs, with its source.

``prices.csv`` holds only figures that somebody published. A region that was refreshed has the prices of that day, and
a type that the price list does not name has none there. In us-east-1 a missing price is estimated from that of EC2,
and says so. Spot has no price of its own: SageMaker bills fewer seconds at this rate.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sagefit.catalog import store
from sagefit.catalog.instance_table import Instance, instances
from sagefit.errors import SagefitError
from sagefit.nearest import did_you_mean

REFERENCE_REGION = "us-east-1"
"""The only region whose ratio of SageMaker's prices to those of EC2 is established."""

EC2_PRICES = "aws/karpenter-provider-aws"
EC2_PRICES_DATE = "2026-07-20"


_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")


@dataclass(frozen=True)
class Price:
    """On-demand USD per instance-hour of training in one region, with where and when it was read.

    ``estimated`` prices were published by nobody: every text and JSON that shows one has to say so.
    """

    usd_per_hour: float
    source: str
    date: str
    estimated: bool = False


@cache
def price(ml_type: str, region: str, *, packaged: bool = False) -> Price | None:
    """The price of ``ml_type`` in ``region``: published, else estimated, else None.

    ``packaged`` leaves refreshed prices aside, for what has to come out the same on every machine.
    """
    known = _published().get((ml_type, region))
    snapshot = None if packaged else store.snapshot(region)
    if snapshot and (known is None or snapshot.date >= known.date):
        usd = snapshot.prices.get(ml_type)
        return Price(usd, snapshot.source, snapshot.date) if usd else None
    if known is None and region == REFERENCE_REGION and ml_type in instances():
        return _estimate(instances()[ml_type])
    return known


def checked_region(name: str) -> str:
    """``name``, where it may be one of a region: new ones come, so no list is kept. Else raises SagefitError."""
    if _REGION.fullmatch(name):
        return name
    known = sorted({region for _, region in _published()})
    meant = did_you_mean(name, known, f"regions have names such as {REFERENCE_REGION}")
    raise SagefitError(f"region {name}: no name of an AWS region", hint=meant)


def family_ratio(instance: Instance) -> float | None:
    """SageMaker's on-demand price over that of EC2 in us-east-1; None where no price of the kind is known.

    Two independent sources agree on one ratio for each family, within a cent: 1.20 for CPU types (76 types of t3, m5,
    m6i, m7i, c5, c6i, c7i, r5, r6i, r7i), 1.25 for G types (29) and 1.40 for their ``xlarge`` (4), 1.15 for
    p4d, p4de, p5, p3dn and trn1 (7). For other families of the same kind it is extrapolated.
    """
    if instance.retired:
        return None
    if instance.family.startswith("g"):
        return 1.40 if instance.size == "xlarge" else 1.25
    return 1.15 if instance.accelerator else 1.20


def _estimate(instance: Instance) -> Price | None:
    ratio, ec2 = family_ratio(instance), _ec2_prices().get(instance.ml_type)
    if ratio is None or ec2 is None:
        return None
    source = f"EC2 on-demand x {ratio:.2f} (EC2 prices of {EC2_PRICES_DATE}, {EC2_PRICES})"
    return Price(round(ec2 * ratio, 4), source, EC2_PRICES_DATE, estimated=True)


@cache
def _published() -> dict[tuple[str, str], Price]:
    return {
        (row["ml_type"], row["region"]): Price(float(row["usd_per_hour"]), row["source"], row["date"])
        for row in _rows("prices.csv")
    }


@cache
def _ec2_prices() -> dict[str, float]:
    return {row["ml_type"]: float(row["usd_per_hour"]) for row in _rows("ec2_prices.csv")}


def _rows(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
