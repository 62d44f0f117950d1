"""What was nearly wasted or nearly used up, and what to change: GPUs that had little to do, and disks."""

from __future__ import annotations

from collections.abc import Sequence

from sagefit.catalog import Instance, Price, instances, price
from sagefit.running.reports import Idle, Report, fullest_disk

_HALF = 0.5


def in_words(idle: Idle, instance: Instance, region: str) -> str:
    """What was seen of the GPUs of an attempt on ``instance``, why that was, and what to do; prices of ``region``."""
    if idle.never:
        return "its GPUs were never used: let the script use them, or take an instance without"
    seen = (
        f"its GPUs were less than 10 % busy for {100 * idle.share:.0f} % of the time (GPUs {idle.gpu:.0f} %, CPUs "
        f"{idle.cpu:.0f} % busy on average)"
    )
    if idle.waiting <= _HALF:
        return f"{seen}: they waited, and not for the CPUs: start more loader workers, or read the data faster"
    more = _more_vcpus(instance, region)
    told = f"{seen}, and waited for the CPUs: prepare the data before the training (processing)"
    if more is None:
        return told
    wider, usd = more
    about = "~" if usd.estimated else ""
    return (
        f"{told}, or take {wider.ml_type}: the same GPUs with {wider.vcpus} vCPUs instead of {instance.vcpus}, for "
        f"{about}{usd.usd_per_hour:.2f} USD an hour"
    )


def filled_disk(reports: Sequence[Report], instance: Instance | None) -> str:
    """A disk that was nearly full, and what gives a larger one; empty where none was."""
    told = fullest_disk(reports)
    if not told:
        return ""
    own = instance is not None and instance.nvme_gb > 0
    return f"{told}: " + ("take a type with larger disks of its own" if own else "raise resources.volume_size_gb")


def _more_vcpus(instance: Instance, region: str) -> tuple[Instance, Price] | None:
    """The cheapest instance with the same GPUs and more vCPUs."""
    same = [
        each
        for each in instances().values()
        if (each.accelerator, each.accelerator_count) == (instance.accelerator, instance.accelerator_count)
        and each.vcpus > instance.vcpus
        and not each.retired
    ]
    priced = [(each, usd) for each in same if (usd := price(each.ml_type, region))]
    return min(priced, key=lambda each: (each[1].usd_per_hour, each[0].vcpus), default=None)
