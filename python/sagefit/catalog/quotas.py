"""The service quotas that limit how many instances of a type train at once."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Literal

Usage = Literal["training", "spot", "warm_pool", "processing"]

USAGES: dict[Usage, str] = {
    "training": "for training job usage",
    "spot": "for spot training job usage",
    "warm_pool": "for training warm pool usage",
    "processing": "for processing job usage",
}


def quota_name(ml_type: str, usage: Usage) -> str:
    """The quota's name in Service Quotas, such as ``ml.g5.xlarge for spot training job usage``."""
    return f"{ml_type} {USAGES[usage]}"


def quota_code(ml_type: str, usage: Usage) -> str | None:
    """The quota's code as one account saw it on 2025-11-02; None where it did not.

    Names decide: ``list_service_quotas`` says which quotas an account has.
    """
    return _codes().get(ml_type, {}).get(usage) or None


@cache
def _codes() -> dict[str, dict[str, str]]:
    with Path(__file__).with_name("quotas.csv").open(newline="", encoding="utf-8") as file:
        return {row["ml_type"]: row for row in csv.DictReader(file)}
