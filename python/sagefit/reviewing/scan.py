"""Runs the policies over a plan, as it will be and as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from sagefit.checkov import Finding, environment, scan
from sagefit.console import err
from sagefit.reviewing.document import Document
from sagefit.reviewing.groups import Grouped, grouped
from sagefit.reviewing.policies import PolicyDiff, compare, moves_of, scoped, scoped_base

MANY = 1500
"""Resources of different kinds, from which on a scan takes longer than anybody expects."""


def policy_diff(document: Document) -> PolicyDiff:
    """Policy failures that the plan brings, ends and leaves. Raises SagefitError where something was not judged."""
    environment()  # installed once, before two scans ask for it
    groups = [grouped(scoped_base(document)), grouped(scoped(document))]
    most = max(len(each.plan["resource_changes"]) for each in groups)
    if most > MANY:
        err.print(f"The policies judge {most:,} resources that differ from each other: this can take minutes.")
    with ThreadPoolExecutor(max_workers=2) as pool:
        before, after = pool.map(judged, groups)
    return compare(before, after, moves_of(document))


def judged(groups: Grouped) -> list[Finding]:
    """What checkov says of every member of every group."""
    plan: dict[str, Any] = groups.plan
    found = scan(plan) if plan["resource_changes"] else []
    return [replace(each, address=address) for each in found for address in groups.members.get(each.address, ())]
