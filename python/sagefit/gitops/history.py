"""What the side that plans knows of runs: the last ones of a job, those in progress, and who shares a platform.

It is told, not judged: whoever reviews believes it no more than the rest of what was handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timezone

from botocore.exceptions import BotoCoreError, ClientError

from sagefit import running
from sagefit.errors import SagefitError
from sagefit.gitops.stacks import Stack
from sagefit.platform import NoPlatformError, Platform, load_platform
from sagefit.reviewing import PastRun, Runs
from sagefit.reviewing.runs import MOST
from sagefit.running import Run, RunRecord

_AT_ONCE = 5  # calls
_ENDED = {"SUCCEEDED": "completed", "ABORTED": "stopped", "TIMED_OUT": "timed out", "RUNNING": ""}


def runs_of(stack: Stack, every: Iterable[Stack]) -> Runs:
    """What is known of the runs of ``stack``; ``every`` are the stacks of the same tree.

    Only read calls are made. Whatever may not be seen, or fails, is said and stops no plan.
    """
    sharing = sorted(other.name for other in every if other.platform == stack.platform and not other.is_platform)
    jobs = sharing if stack.is_platform else []
    try:
        platform = load_platform(stack.platform)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            if stack.is_platform:
                return Runs(jobs=jobs, in_progress=_in_progress(jobs, platform, pool.map))
            newest = running.latest_runs(stack.name, platform, limit=MOST)
            last = [past(record) for record in pool.map(running.read_run, newest)]
            return Runs(last=last, in_progress=_in_progress([stack.name], platform, pool.map))
    except NoPlatformError:  # nothing can have run
        return Runs(jobs=jobs)
    except (ClientError, BotoCoreError, SagefitError) as error:
        return Runs(jobs=jobs, unknown=_first_line(error))


def past(record: RunRecord) -> PastRun:
    """A run as a page tells of it."""
    last = record.attempts[-1] if record.attempts else None
    usd, estimated, missing = record.spent
    gpu = [each.gpu_peak_gib for each in record.attempts if each.gpu_peak_gib is not None]
    host = [each.host_peak_gib for each in record.attempts if each.host_peak_gib is not None]
    many = f"{last.instance_count} x {last.instance_type}" if last and last.instance_count > 1 else ""
    groups = ", ".join(last.groups) if last else ""
    return PastRun(
        name=record.run.name,
        started=record.started.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M"),
        ended=_ended(record),
        attempts=len(record.attempts),
        hardware=(groups or many or (last.instance_type if last else ""))[:200],
        gpu_gib=max(gpu, default=None),
        host_gib=max(host, default=None),
        usd=None if missing else usd,
        estimated=estimated,
    )


def _ended(record: RunRecord) -> str:
    if record.status in _ENDED:
        return _ENDED[record.status]
    steps = [step.outcome for step in record.steps if step.diagnosis]
    failed = [attempt.outcome for attempt in record.attempts if attempt.diagnosis] or steps
    return f"failed: {failed[-1]}" if failed and failed[-1] else "failed"


_Map = Callable[[Callable[[str], list[Run]], list[str]], Iterable[list[Run]]]


def _in_progress(jobs: list[str], platform: Platform, each: _Map) -> list[str]:
    found = each(lambda job: running.running_runs(job, platform), jobs)
    return [run.name for runs in found for run in runs]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
