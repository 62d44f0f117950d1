"""What a training job runs on: instances of one type, or groups of several types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sagefit.catalog.prices import Price, price


class Instances(NamedTuple):
    """Instances of one type; ``name`` is that of their group, empty where a job has no groups."""

    name: str
    instance_type: str
    instance_count: int

    def __str__(self) -> str:
        return f"{self.instance_count} x {self.instance_type}"


def groups_of(resources: Mapping[str, Any]) -> tuple[Instances, ...]:
    """The instance groups of a ``ResourceConfig`` of SageMaker's API; empty where it has one type."""
    return tuple(
        Instances(str(group["InstanceGroupName"]), str(group["InstanceType"]), int(group["InstanceCount"]))
        for group in resources.get("InstanceGroups") or []
    )


def in_words(instances: Iterable[Instances]) -> str:
    """``1 x ml.g5.xlarge + 2 x ml.c5.4xlarge``."""
    return " + ".join(map(str, instances))


def hourly_price(instances: Iterable[Instances], region: str, *, packaged: bool = False) -> Price | None:
    """What an hour on demand costs, all instances together; None when a price is not known.

    The price is an estimate where one of its parts is, and from where the first is from.
    """
    known = [(price(each.instance_type, region, packaged=packaged), each.instance_count) for each in instances]
    found = [(each, count) for each, count in known if each]
    if not known or len(found) < len(known):
        return None
    total = sum(each.usd_per_hour * count for each, count in found)
    return replace(found[0][0], usd_per_hour=total, estimated=any(each.estimated for each, _ in found))
