"""What a report tells of a run: its record, and of each step and attempt the memory over time and what ended it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sagefit.explaining import Explanation, Timeline, cheaper, explain_all, of_hosts
from sagefit.planning import JobPlan
from sagefit.running import AttemptRecord, Run, RunRecord, expected, read_run, reports
from sagefit.running.records import StepRecord


@dataclass(frozen=True)
class Chapter:
    """One step or attempt. ``told`` says what ended it if it failed, ``memory`` is what its recorder kept."""

    job: AttemptRecord | StepRecord
    told: Explanation | None
    memory: tuple[Timeline, ...]


@dataclass(frozen=True)
class Story:
    """A run, as it was when its record was read."""

    record: RunRecord
    chapters: tuple[Chapter, ...]
    has_file: bool = True
    """Whether its job file is here: without it there are neither predictions nor changes to propose."""
    saving: str = ""
    """In words, what a run that completed could have cost less on another instance."""

    @property
    def ended_by(self) -> Chapter | None:
        """What a run that failed ended with."""
        failed = [chapter for chapter in self.chapters if chapter.told]
        return failed[-1] if failed and not self.record.succeeded else None

    @property
    def ended(self) -> datetime:
        """When the run ended, or was read if it goes on."""
        return self.record.ended or self.record.read


def gather(run: Run, plan: JobPlan | None, cloud: str) -> Story:
    """Read ``run`` and everything there is to say of it. Asks AWS.

    ``plan`` is that of its job file as it is now, None where that is not here. ``cloud`` is where it was.

    Raises SagefitError when there is no such run.
    """
    record = expected(read_run(run), plan)
    told = {id(each.failed): each for each in explain_all(record, plan, cloud)}
    return Story(record, tuple(_chapters(record, told)), plan is not None, cheaper(record, plan))


def _chapters(record: RunRecord, told: dict[int, Explanation]) -> Iterator[Chapter]:
    for step in record.steps:
        yield Chapter(step, told.get(id(step)), ())
    for attempt in record.attempts:
        found = told.get(id(attempt))
        hosts = found.hosts if found else reports.read(attempt.output) if attempt.outcome else ()
        yield Chapter(attempt, found, of_hosts(hosts))
