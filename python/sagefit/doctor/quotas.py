"""Whether the account may have the instances of every attempt and step: Service Quotas is asked by name.

A quota counts the instances of a type that are in use at once, those of other jobs too. A new account has 0 of most.
https://docs.aws.amazon.com/general/latest/gr/sagemaker.html
"""

from __future__ import annotations

from collections.abc import Iterator

from sagefit.catalog.quotas import Usage, quota_name
from sagefit.doctor.asking import client
from sagefit.doctor.finding import Finding
from sagefit.planning import JobPlan

_CHECK = "quota"
_SERVICE = "sagemaker"


def check_quotas(plan: JobPlan, region: str) -> Iterator[Finding]:
    """A finding for each quota that is too small, or one line when all are large enough."""
    needs = dict(needed(plan))
    found = _quotas(region)
    short = False
    for name, (count, who) in needs.items():
        if name not in found:
            short = True
            yield Finding(
                _CHECK,
                "unknown",
                f"Service Quotas in {region} has no {name!r}, for {who}",
                "is the type offered there?",
            )
        elif found[name][0] < count:
            short = True
            value, code = found[name]
            yield Finding(
                _CHECK,
                "fault",
                f"{name}: {value:g}, and {who} needs {count}",
                f"aws service-quotas request-service-quota-increase --service-code {_SERVICE} --quota-code {code} "
                f"--desired-value {count} --region {region}",
            )
    if not short:
        told = ", ".join(f"{name}: {found[name][0]:g} (needs {count})" for name, (count, _) in needs.items())
        yield Finding(_CHECK, "ok", told)


def needed(plan: JobPlan) -> Iterator[tuple[str, tuple[int, str]]]:
    """The most instances at once, and what needs them, by the name of the quota; the most demanding comes last."""
    most: dict[str, int] = {}
    for attempt in [*plan.steps, *plan.attempts]:
        at_once = attempt.tuning.max_parallel_jobs if attempt.tuning else 1
        usages: list[Usage] = ["spot" if attempt.spot else "training"]
        if attempt in plan.steps:
            usages = ["processing"]
        elif attempt.keep_alive_seconds:
            usages.append("warm_pool")
        types: dict[str, int] = {}
        for group in attempt.instances:
            types[group.instance_type] = types.get(group.instance_type, 0) + group.instance_count * at_once
        for ml_type, count in types.items():
            for usage in usages:
                name = quota_name(ml_type, usage)
                if count > most.get(name, 0):
                    most[name] = count
                    yield name, (count, attempt.label)


def _quotas(region: str) -> dict[str, tuple[float, str]]:
    """Value and code of each quota of SageMaker in the account, by name."""
    pages = client("service-quotas", region).get_paginator("list_service_quotas").paginate(ServiceCode=_SERVICE)
    return {
        quota["QuotaName"]: (float(quota["Value"]), str(quota["QuotaCode"]))
        for page in pages
        for quota in page["Quotas"]
    }
