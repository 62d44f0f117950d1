"""What ``sagefit catalog refresh`` learned from AWS, kept for this user: one JSON file for each region.

A file that cannot be read is ignored with a warning: it holds nothing that the packaged tables or another refresh
do not give, and a broken cache must not stop somebody from watching a run.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sagefit.paths import user_cache

SCHEMA = 1
FOLDER_VARIABLE = "SAGEFIT_CATALOG"
"""Names another folder for the cache; one that does not exist means the packaged tables alone."""


@dataclass(frozen=True)
class Specs:
    """What EC2 says of an instance type. Memory is in GiB, disks in GB."""

    vcpus: int
    memory_gib: float
    nvme_gb: int
    efa: bool


@dataclass(frozen=True)
class Snapshot:
    """The answers of AWS on one day about one region; prices are USD per instance-hour of training."""

    region: str
    date: str
    source: str
    prices: dict[str, float]
    specs: dict[str, Specs]


def folder() -> Path:
    """Where the snapshots lie."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser().resolve() if named else user_cache() / "catalog"


@cache
def snapshots() -> tuple[Snapshot, ...]:
    """The snapshots of all regions, oldest first. Warns once of each file that is not one."""
    found = []
    for path in sorted(folder().glob("*.json")):
        try:
            found.append(_read(path))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            _warn(path, error)
    return tuple(sorted(found, key=lambda snapshot: (snapshot.date, snapshot.region)))


def snapshot(region: str) -> Snapshot | None:
    """What is known of ``region``; None before its first refresh."""
    return next((known for known in snapshots() if known.region == region), None)


def write(snapshot: Snapshot) -> Path:
    """Save a snapshot in place of the region's older one: all of it or nothing. Raises OSError."""
    target = folder() / f"{snapshot.region}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"schema": SCHEMA} | asdict(snapshot), indent=1, sort_keys=True)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    snapshots.cache_clear()
    return target


def _read(path: Path) -> Snapshot:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']} is not {SCHEMA}")
    if data["region"] != path.stem:
        raise ValueError(f"it says region {data['region']!r}")
    prices = {str(ml_type): float(usd) for ml_type, usd in data["prices"].items()}
    if not all(0 < usd < float("inf") for usd in prices.values()):
        raise ValueError("a price is not a positive number")
    return Snapshot(
        region=data["region"],
        date=str(data["date"]),
        source=str(data["source"]),
        prices=prices,
        specs={str(ml_type): _specs(**specs) for ml_type, specs in data["specs"].items()},
    )


def _specs(*, vcpus: int, memory_gib: float, nvme_gb: int, efa: bool) -> Specs:
    return Specs(int(vcpus), float(memory_gib), int(nvme_gb), bool(efa))


def _warn(path: Path, error: Exception) -> None:
    from sagefit.console import command, err  # only here: the catalog is read by commands that print nothing

    err.print(
        f"warning: {path}: not a catalog cache ({error or type(error).__name__}); the packaged figures are used. "
        f"Write it anew: {command('catalog', 'refresh', '--region', path.stem)}; or delete it",
        markup=False,
        soft_wrap=True,
    )
