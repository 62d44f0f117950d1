"""Everything there is to say about one failure of a run: cause, evidence, what was lost, and what to do next."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from sagefit import failures
from sagefit.errors import SagefitError
from sagefit.explaining.progress import reached
from sagefit.explaining.proposals import Failed
from sagefit.explaining.timeline import Timeline, of_class, of_hosts
from sagefit.explaining.tried import Remedy, remedies
from sagefit.failures import Diagnosis, Excerpt
from sagefit.job.source import text_of
from sagefit.planning import JobPlan
from sagefit.running import PROCESSING_LOGS, RunRecord, reports, tails, view
from sagefit.running.peaks import LARGEST, MEMORY_CLASSES, record_of
from sagefit.running.records import AttemptRecord, StepRecord


@dataclass(frozen=True)
class Explanation:
    """One failed attempt or step. What is not known is empty or None."""

    what: str
    failed: AttemptRecord | StepRecord
    diagnosis: Diagnosis
    around: Excerpt | None
    memory: Timeline | None = None
    reached: str = ""
    saved: str = ""
    lost: str = ""
    remedies: tuple[Remedy, ...] = ()
    record: Any = None
    """What the attempt measured, to be kept beside the job file."""
    hosts: tuple[reports.Report, ...] = ()
    """What the recorder of each host left."""

    @property
    def attempt(self) -> AttemptRecord | None:
        """What failed, if it was an attempt."""
        return self.failed if isinstance(self.failed, AttemptRecord) else None

    def as_json(self) -> dict[str, Any]:
        """The object of ``sagefit diagnose RUN --json``, beside the diagnosis."""
        attempt = self.attempt
        growth = {"growth": attempt.growth} if attempt and attempt.growth else {}
        return {
            "around": self.around.as_json() if self.around else None,
            "failed": self.what,
            "memory": self.memory.as_json() if self.memory else None,
            "reached": self.reached or None,
            "saved": self.saved or None,
            "lost": self.lost or None,
            "lost_seconds": attempt.lost_seconds if attempt else None,
            "lost_usd": attempt.lost_usd if attempt else None,
            "changes": [remedy.as_json() for remedy in self.remedies],
        } | growth


def explain(run: RunRecord, plan: JobPlan | None, cloud: str) -> Explanation | None:
    """What ended the last attempt, or else the last step, of a run that failed; None where none did.

    ``plan`` is that of the run's job file as it is now; without it there are no changes to propose. ``cloud`` is where
    the run was. Asks AWS for logs and for what the recorder left, and leaves out what it does not get.
    """
    failed = [job for job in run.jobs if job.diagnosis]
    return explain_job(run, failed[-1], plan, cloud) if failed else None


def explain_all(run: RunRecord, plan: JobPlan | None, cloud: str) -> Iterator[Explanation]:
    """What `explain` says, and before it, without changes to propose, what ended the steps and attempts before."""
    failed = [job for job in run.jobs if job.diagnosis]
    for job in failed:
        if told := explain_job(run, job, plan if job is failed[-1] else None, cloud):
            yield told


def explain_job(
    run: RunRecord, failed: AttemptRecord | StepRecord, plan: JobPlan | None, cloud: str
) -> Explanation | None:
    """What ended one attempt or step of ``run``, see `explain`; None where it did not fail."""
    if failed.diagnosis is None:
        return None
    if isinstance(failed, StepRecord):
        return _of_step(run, failed, failed.diagnosis, plan)
    return _of_attempt(run, failed, failed.diagnosis, plan, cloud)


def _of_attempt(
    run: RunRecord, failed: AttemptRecord, diagnosis: Diagnosis, plan: JobPlan | None, cloud: str
) -> Explanation:
    logs: dict[str, list[str]] = {}
    with contextlib.suppress(ClientError):
        logs = tails(failed.log_job)
    diagnosis = _weighed(failed, diagnosis, logs)
    found = reports.read(failed.output, largest=LARGEST) if failed.training_job and not failed.search else []
    measured = record_of(failed, cloud, found) if found and failed.outcome in MEMORY_CLASSES else None
    told = Explanation(
        f"attempt {failed.index} {failed.name}",
        failed,
        diagnosis,
        failures.around(logs, diagnosis) or failures.ending(logs),
        of_class(of_hosts(found), diagnosis.failure_class),
        reached(logs),
        reports.newest_checkpoint(found),
        _lost(failed, saved=reports.has_saved(found)),
        record=measured,
        hosts=tuple(found),
    )
    if plan is None or (run.is_over and run.succeeded):  # it went on by itself
        return told
    also = JobPlan(plan.job, (measured,)) if measured else plan
    return replace(told, remedies=_remedies(run, Failed(also, failed, diagnosis.failure_class, bool(measured)), plan))


def _lost(failed: AttemptRecord, *, saved: bool) -> str:
    """The work that is lost, in words; nothing where that is not known."""
    if failed.lost_seconds is None:
        return ""
    return view.lost(failed, saved=saved) or "less than a second of training"


def _weighed(failed: AttemptRecord, diagnosis: Diagnosis, logs: dict[str, list[str]]) -> Diagnosis:
    """The diagnosis with what its logs speak for besides, also where a reason was enough to tell the class."""
    if diagnosis.rejected or not logs:
        return diagnosis
    found = failures.diagnose(failed.failure_reason or None, secondary_status=failed.status or None, log=logs)
    same = found.failure_class == diagnosis.failure_class
    return replace(diagnosis, rejected=found.rejected) if same else diagnosis


def _of_step(run: RunRecord, failed: StepRecord, diagnosis: Diagnosis, plan: JobPlan | None) -> Explanation:
    logs: dict[str, list[str]] = {}
    with contextlib.suppress(ClientError):
        logs = tails(failed.processing_job, PROCESSING_LOGS)
    around = failures.around(logs, diagnosis) or failures.ending(logs)
    told = Explanation(f"processing {failed.name}", failed, diagnosis, around, reached=reached(logs))
    if plan is None:
        return told
    return replace(told, remedies=_remedies(run, Failed(plan, failed, diagnosis.failure_class), plan))


def _remedies(run: RunRecord, failed: Failed, now: JobPlan) -> tuple[Remedy, ...]:
    with contextlib.suppress(SagefitError, OSError):  # the job file of today is not what ran
        return tuple(remedies(failed, text_of(failed.job.path), run.run.platform, now))
    return ()
