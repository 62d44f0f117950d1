"""What would go wrong before anything is applied: each thing is looked at once, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from sagefit.doctor.account import Caller, check_identity, find_caller, find_platform
from sagefit.doctor.asking import guarded
from sagefit.doctor.data import check_inputs, check_keys
from sagefit.doctor.finding import Finding
from sagefit.doctor.images import check_images
from sagefit.doctor.logs import check_logs
from sagefit.doctor.network import check_network
from sagefit.doctor.notices import check_notices
from sagefit.doctor.permissions import check_permissions
from sagefit.doctor.quotas import check_quotas
from sagefit.doctor.state import check_state
from sagefit.doctor.tools import check_tools
from sagefit.doctor.written import as_written
from sagefit.errors import SagefitError
from sagefit.job.images import region_problems
from sagefit.planning import JobPlan
from sagefit.platform import Platform
from sagefit.platform_rules import platform_problems
from sagefit.target import Target

__all__ = ["Finding", "examine"]


def examine(target: Target, name: str, plan: JobPlan | None = None) -> Iterator[Finding]:
    """Look at all that an apply of the platform ``name``, or of a planned job on it, depends on.

    Findings come one by one, in the order in which they would be in the way. Where AWS does not know who asks, the
    rest is not asked.
    """
    yield from check_tools()
    caller = find_caller()
    if isinstance(caller, Finding):
        yield caller
        return
    yield from check_identity(caller)
    platform, told = find_platform(name, needed=plan is not None)
    yield told
    job, described = plan.job if plan else None, platform
    if platform is None and plan is None and told.state == "ok":
        try:
            described = as_written(name, caller)
        except SagefitError as error:
            yield Finding("platform", "fault", error.message, error.hint or "")
    yield from guarded("state", check_state(target, caller, name, described, job))
    yield from guarded("permissions", check_permissions(caller, name, described, job))
    yield from guarded("key", check_keys(job, described))
    if plan:
        yield from _of_a_job(plan, platform, caller)
    yield from guarded("network", check_network(plan, described, caller.region))
    if platform:
        yield from guarded("alarms", check_notices(platform))
        yield from guarded("logs", check_logs(platform))


def _of_a_job(plan: JobPlan, platform: Platform | None, caller: Caller) -> Iterator[Finding]:
    found = platform_problems(plan, platform) if platform else region_problems(plan.job, caller.region)
    problems = plan.job.told(list(found))
    for told, _, knob in (problem.partition("\n") for problem in problems):
        yield Finding("job", "fault", told, knob.strip())
    if platform and not problems:
        yield Finding("job", "ok", f"{plan.job.name} keeps the platform's rules")
    yield from guarded("quota", check_quotas(plan, caller.region))
    yield from guarded("image", check_images(plan, platform, caller.region))
    yield from guarded("inputs", check_inputs(plan.job, caller.region))
