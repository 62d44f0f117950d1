"""Follow a run until it ends: a live table on a terminal, a line for each change anywhere else."""

from __future__ import annotations

import time

from rich.console import Group
from rich.live import Live
from rich.text import Text

from sagefit.cloud import control
from sagefit.console import command, err
from sagefit.errors import FAILED, SagefitError
from sagefit.job.values import duration
from sagefit.running import view
from sagefit.running.clients import CONNECTION_LOST
from sagefit.running.ledger import read_run
from sagefit.running.logs import LogReader
from sagefit.running.processing import LOG_GROUP
from sagefit.running.records import COMPLETED, AttemptRecord, Run, RunRecord, StepRecord
from sagefit.target import Target

_LOCAL_SECONDS = 0.5
_AWS_SECONDS = 10.0
_LOST_SECONDS = 5.0


def watch(run: Run, target: Target, *, logs: bool = False) -> RunRecord:
    """Follow ``run`` and return its last state; ``logs`` prints what the training jobs print.

    A lost connection is waited out, because the run itself continues without a watcher.
    Raises KeyboardInterrupt on Ctrl-C, which leaves the run alone, and SagefitError when the embedded cloud is gone.
    """
    follow = _live if err.is_terminal else _lines
    return follow(_Reader(run, target, logs=logs), _LOCAL_SECONDS if target.is_local else _AWS_SECONDS)


def _live(reader: _Reader, seconds: float) -> RunRecord:
    with Live(console=err, transient=True, refresh_per_second=4) as live:
        while True:
            record = reader.read()
            if record:
                age = record.read - record.started
                head = Text(f"{record.run.name}  {duration(age.total_seconds())}")
                live.update(Group(head, view.ledger(record), *view.story(record)))
                if record.is_over:
                    return record
            else:
                live.update(Text("connection lost, trying again; the run goes on"))
            time.sleep(seconds)


def _lines(reader: _Reader, seconds: float) -> RunRecord:
    said: dict[tuple[int, str], str] = {}  # an attempt that AWS lost has several training jobs
    while True:
        record = reader.read()
        if record is None:
            err.print("connection lost, trying again; the run goes on")
        for step in record.steps if record else []:
            now = step.outcome or step.status
            if said.get((-1, step.processing_job)) != now:
                said[-1, step.processing_job] = now
                evidence = f": {step.evidence}" if step.evidence else ""
                err.print(f"processing {step.name} on {view.instance(step)}: {now}{evidence}", soft_wrap=True)
        for attempt in record.attempts if record else []:
            now = attempt.outcome or view.doing(attempt)
            which = attempt.index, attempt.training_job
            if said.get(which) != now:
                said[which] = now
                err.print(_line(attempt), soft_wrap=True)
        if record and record.is_over:
            return record
        time.sleep(seconds)


def _line(attempt: AttemptRecord) -> str:
    what = attempt.outcome or view.doing(attempt)
    evidence = f": {attempt.evidence}" if attempt.evidence else ""
    again = " again" if attempt.training_job[-1:].isalpha() else ""
    return f"attempt {attempt.index} {attempt.name}{again} on {view.instance(attempt)}: {what}{evidence}"


class _Reader:
    """Reads a run again and again, asking only for what can still change."""

    def __init__(self, run: Run, target: Target, *, logs: bool) -> None:
        self._run = run
        self._target = target
        self._logs = LogReader() if logs else None
        self._trials: dict[str, tuple[str, ...]] = {}  # those that ran when their search was last read
        self._finished: dict[str, AttemptRecord] = {}
        self._ended: set[str] = set()
        self._step_logs = LogReader(LOG_GROUP) if logs else None
        self._steps: dict[str, StepRecord] = {}

    def read(self) -> RunRecord | None:
        """The run now, or None while the connection is lost."""
        try:
            record = read_run(self._run, known=self._finished, steps=self._steps)
            self._print_logs(record)
        except CONNECTION_LOST as error:
            if self._target.is_local and control.status() is None:
                raise SagefitError(
                    "the embedded cloud stopped, and the run with it",
                    hint=f"start again: {command('cloud', 'up')}; then apply the platform, which is lost, too",
                    exit_code=FAILED,
                ) from error
            time.sleep(_LOST_SECONDS)
            return None
        over = {a.training_job: a for a in record.attempts if a.outcome and a.training_job}
        # Asked for twice after its end: the last lines of its log, which may tell why, can come late.
        self._finished |= {name: attempt for name, attempt in over.items() if name in self._ended}
        self._ended |= over.keys()
        self._steps = {step.processing_job: step for step in record.steps if step.outcome == COMPLETED}
        return record

    def _print_logs(self, record: RunRecord) -> None:
        """Print new lines of the steps and attempts that were not over when they were last read."""
        for step in record.steps:
            if self._step_logs and step.processing_job and step.processing_job not in self._steps:
                for line in self._step_logs.new_lines(step.processing_job):
                    err.print(Text(f"{step.name} | {line}"), soft_wrap=True)
        for attempt in record.attempts:
            if self._logs and attempt.training_job and attempt.training_job not in self._finished:
                running = attempt.search.running if attempt.search else (attempt.training_job,)
                ran = self._trials.get(attempt.training_job, ())  # a trial that ended is read once more
                for job in dict.fromkeys((*ran, *running)):
                    for line in self._logs.new_lines(job):
                        err.print(Text(f"{attempt.name} | {line}"), soft_wrap=True)
                self._trials[attempt.training_job] = running
