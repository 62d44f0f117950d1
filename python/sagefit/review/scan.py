"""Runs the policies over a plan, as it will be and as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sagefit.checkov import Finding, environment, scan
from sagefit.review.document import Document
from sagefit.review.policies import PolicyDiff, compare, moves_of, scoped, scoped_base


def policy_diff(document: Document) -> PolicyDiff:
    """Policy failures that the plan brings, ends and leaves. Raises SagefitError where something was not judged."""
    environment()  # installed once, before two scans ask for it
    with ThreadPoolExecutor(max_workers=2) as pool:
        before, after = pool.map(_scanned, (scoped_base(document), scoped(document)))
    return compare(before, after, moves_of(document))


def _scanned(plan: dict[str, Any]) -> list[Finding]:
    return scan(plan) if plan["resource_changes"] else []
