"""The catalog as a table for people and as plain data."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from sagefit.catalog.instance_table import Instance
from sagefit.catalog.prices import Price
from sagefit.catalog.quotas import USAGES, quota_code, quota_name

Row = tuple[Instance, Price | None]

NARROW, VERY_NARROW = 100, 80
"""Terminals of fewer columns get tables of fewer columns."""


def table(rows: list[Row], width: int = NARROW) -> Table:
    """One line a type: memory in GiB, of the host and of each accelerator. `legend` explains a price's number.

    Terminals of less than 100 and of less than 80 columns get fewer columns, and an estimate is marked by ~ there.
    """
    wide, small = width >= NARROW, width < VERY_NARROW
    numbers = {origin: str(number) for number, origin in enumerate(_origins(rows), start=1)}
    shown = {
        "type": True,
        ">vCPU": not small,
        ">GiB": wide,
        ">usable": True,
        "accelerators": True,
        ">usable each": True,
        ">NVMe GB": not small,
        "EFA": wide,
        ">USD/h": True,
        "price": wide,
    }
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in (heading for heading, here in shown.items() if here):
        words = heading == "accelerators"
        grid.add_column(
            "GPUs" if words and small else heading.removeprefix(">").removesuffix(" each"),
            justify="right" if heading.startswith(">") else "left",
            no_wrap=not words,
            min_width=(8 if small else len(heading)) if words else None,
            overflow="fold",
        )
    for instance, price in rows:
        mark = "~" if price and price.estimated and not wide else ""
        cells: list[str | Text] = [
            instance.ml_type,
            str(instance.vcpus),
            f"{instance.memory_gib:g}",
            f"{instance.usable_host_gib:.1f}",
            f"{instance.accelerator_count} {instance.accelerator}" if instance.accelerator else "",
            _usable_each(instance),
            str(instance.nvme_gb or ""),
            "yes" if instance.efa else "",
            f"{mark}{price.usd_per_hour:.3f}" if price else "",
            _mark(price, numbers),
        ]
        grid.add_row(
            *(cell for cell, here in zip(cells, shown.values(), strict=True) if here),
            style="dim" if instance.retired else None,
        )
    return grid


def legend(rows: list[Row], width: int = NARROW) -> list[str]:
    """What the numbers behind the prices stand for, and which families have something to know about them."""
    lines = [f"{number}: {origin}" for number, origin in enumerate(_origins(rows), start=1)]
    if width < NARROW:
        lines = ["~: estimated"] if any(price and price.estimated for _, price in rows) else []
    families: dict[str, dict[str, None]] = {}
    for instance, _ in rows:
        for flag in instance.flags:
            families.setdefault(flag, {})[instance.family] = None
    return lines + [f"{flag}: {', '.join(those)}" for flag, those in families.items()]


def _origins(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(_origin(price) for _, price in rows if price))


def _origin(price: Price) -> str:
    return f"estimated: {price.source}" if price.estimated else f"{price.source}, {price.date}"


def _mark(price: Price | None, numbers: dict[str, str]) -> Text:
    if price is None:
        return Text("missing", style="yellow")
    number = numbers[_origin(price)]
    return Text(f"estimated {number}", style="yellow") if price.estimated else Text(number)


def _usable_each(instance: Instance) -> str:
    if instance.usable_gpu_gib is not None:
        return f"{instance.usable_gpu_gib:.2f}"
    return "unknown" if instance.accelerator else ""


def as_json(instance: Instance, region: str, price: Price | None) -> dict[str, Any]:
    """A type and its price as plain data; memory in GiB, disks in GB, null where nothing is known."""
    return {
        "instance_type": instance.ml_type,
        "vcpus": instance.vcpus,
        "memory_gib": instance.memory_gib,
        "usable_host_gib": round(instance.usable_host_gib, 3),
        "accelerator": instance.accelerator or None,
        "accelerator_count": instance.accelerator_count,
        "accelerator_memory_gib": instance.accelerator_memory_gib,
        "gpu_count": instance.gpu_count,
        "usable_gpu_gib": instance.usable_gpu_gib,
        "nvme_gb": instance.nvme_gb,
        "efa": instance.efa,
        "flags": list(instance.flags),
        "region": region,
        "usd_per_hour": price.usd_per_hour if price else None,
        "price_source": price.source if price else None,
        "price_date": price.date if price else None,
        "estimated": price.estimated if price else None,
        "quotas": {
            usage: {"name": quota_name(instance.ml_type, usage), "code": quota_code(instance.ml_type, usage)}
            for usage in USAGES
        },
    }
