"""Service quotas of SageMaker training: how many instances of a type an account may use at once.

The numbers are those of an account that asked for what it needs. A real new account has 0 for most types.
``RequestServiceQuotaIncrease`` is granted at once.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import cache

from sagefit.catalog import instances
from sagefit.catalog.quotas import USAGES

SERVICE_CODE = "sagemaker"
USAGE, SPOT_USAGE, WARM_POOL_USAGE = USAGES["training"], USAGES["spot"], USAGES["warm_pool"]

_CPU_DEFAULTS = {USAGE: 20.0, SPOT_USAGE: 20.0, WARM_POOL_USAGE: 4.0, USAGES["processing"]: 20.0}
_ACCELERATOR_DEFAULTS = {USAGE: 4.0, SPOT_USAGE: 4.0, WARM_POOL_USAGE: 2.0, USAGES["processing"]: 4.0}


@dataclass(frozen=True)
class Quota:
    """One quota and its default."""

    name: str
    default: float

    @property
    def code(self) -> str:
        """An opaque code, as AWS has them; stable, and not AWS's own."""
        return "L-" + hashlib.sha256(self.name.encode()).hexdigest()[:8].upper()


@cache
def quotas() -> dict[str, Quota]:
    """All quotas by code, in the order of their names."""
    named = [
        Quota(f"{instance.ml_type} {usage}", value)
        for instance in instances().values()
        for usage, value in (_ACCELERATOR_DEFAULTS if instance.accelerator_count else _CPU_DEFAULTS).items()
    ]
    return {quota.code: quota for quota in sorted(named, key=lambda quota: quota.name)}


_granted: dict[tuple[str, str], float] = {}
_lock = threading.Lock()


def value(region: str, quota: Quota) -> float:
    """What the account has: the default, or what was asked for."""
    with _lock:
        return _granted.get((region, quota.code), quota.default)


def grant(region: str, quota: Quota, wanted: float) -> None:
    """Set a quota."""
    with _lock:
        _granted[region, quota.code] = wanted


def limit(region: str, instance_type: str, usage: str) -> float:
    """The quota of one instance type; 0 for types that are in no table."""
    quota = Quota(f"{instance_type} {usage}", 0.0)
    found = quotas().get(quota.code)
    return value(region, found) if found else 0.0
