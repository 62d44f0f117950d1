"""The suite: make what the cases stand on, run them, write down what was seen, and take everything down."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sagefit import running
from sagefit.acceptance import seen
from sagefit.acceptance.cases import JOBS, Case
from sagefit.acceptance.ground import GROUND, Ground, children
from sagefit.acceptance.made import Made
from sagefit.acceptance.price import Budget, price_of
from sagefit.acceptance.result import Result
from sagefit.console import command
from sagefit.doctor.quotas import check_quotas
from sagefit.errors import FAILED, SagefitError
from sagefit.job import Job, load_job
from sagefit.planning import plan
from sagefit.platform import load_platform
from sagefit.running import Run, RunRecord
from sagefit.running.clients import CONNECTION_LOST, sagemaker
from sagefit.target import Target
from sagefit.version import __version__

TAKING_DOWN = "taking down"
_SCHEDULE = re.compile(r"^schedule: .*$", re.MULTILINE)
_LOCAL_SECONDS, _AWS_SECONDS = 0.5, 10.0
_LOCAL_AHEAD, _AWS_AHEAD = timedelta(seconds=90), timedelta(minutes=4)
_LATE_SECONDS = 300  # after which a schedule has not started a run
_NO_CHANGES = "No changes."
_TOLD = 1000  # characters of a plan
_WORKS = "Training"  # the secondary status of a job whose script runs
_FOREIGN = (SagefitError, ClientError, BotoCoreError)

Tell = Callable[[str, str], None]
"""Hears who (a case, or what it stands on) does what now."""


class _StoppedError(Exception):
    """Somebody has ended the suite."""


@dataclass
class Suite:
    """Cases on one account, within a limit in USD; what was seen goes to ``out``, a file for each case.

    ``before`` is a folder of such files, of another cloud or another time, with which they are compared.
    """

    target: Target
    account: str
    region: str
    limit: float
    out: Path
    tell: Tell
    before: Path | None = None
    parallel: int = 2
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._folder = self.target.folder / "acceptance"
        self._made = Made(self._folder)
        self._budget = Budget(self.limit)
        self._doing = children(self.target)
        self._ground = self._new_ground(self._doing)

    @property
    def left(self) -> list[str]:
        """What an earlier suite has left on this cloud."""
        return self._made.names

    def run(self, cases: Sequence[Case], done: Callable[[Result], None]) -> list[Result]:
        """Run cases; their results in their order, of which ``done`` hears one by one, and one more if need be: of the
        taking down.

        Raises SagefitError before anything is begun when something is in the way, and when what the cases stand on
        could not be made, after it was taken down.
        """
        platforms = list(dict.fromkeys(case.job.platform for case in cases))
        if self.left:
            raise SagefitError(
                f"an earlier suite has left: {', '.join(self.left)}; nothing was begun",
                hint=f"take it down: {command('acceptance', '--destroy')}",
            )
        for platform in platforms:
            self._ground.check_free(platform)
        try:
            for platform in platforms:
                self._ground.make(platform)
            results = self._run_all(cases, done)
        except BaseException:
            self.take_down()
            raise
        try:
            self.take_down()
        except SagefitError as error:
            results.append(Result(TAKING_DOWN, "failed", f"{error.message}\n{error.hint}"))
        return results

    def take_down(self) -> None:
        """Stop and destroy all that is noted, newest first. Raises SagefitError that names what could not be."""
        self._ended.set()
        ground = self._new_ground(children(self.target))
        failed = []
        for name in reversed(self.left):
            try:
                self._take_down(name, ground)
            except _FOREIGN as error:
                failed.append(f"{name}: {error}")
        if failed:
            raise SagefitError(
                "\n".join(["not taken down:", *failed]),
                hint=f"once it can be: {command('acceptance', '--destroy')}",
                exit_code=FAILED,
            )
        shutil.rmtree(self._folder, ignore_errors=True)

    def _new_ground(self, commands: Any) -> Ground:
        return Ground(
            self.target, self.account, self.region, self._made, commands, lambda line: self.tell("suite", line)
        )

    def _take_down(self, name: str, ground: Ground) -> None:
        kind, _, case = name.partition(" ")
        if name == GROUND:
            ground.unmake_ground()
        elif kind == "job":
            job = load_job(str(self._job_file(case)))
            for run in running.running_runs(job.name, load_platform(job.platform)):
                running.stop(run)
            self._destroy(case, job, ground)
        else:
            ground.unmake(name)

    def _run_all(self, cases: Sequence[Case], done: Callable[[Result], None]) -> list[Result]:
        def one(case: Case) -> Result:
            began = time.monotonic()
            try:
                result = self._run(case)
            except _FOREIGN as error:
                result = Result(case.name, "failed", str(error))
            except _StoppedError:
                result = Result(case.name, "not run", "the suite was ended")
            result = replace(result, seconds=time.monotonic() - began)
            done(result)
            return result

        with ThreadPoolExecutor(max_workers=self.parallel) as pool:
            futures = [pool.submit(one, case) for case in cases]
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                self._ended.set()
                self._doing.stop()
                pool.shutdown(cancel_futures=True)
                raise

    def _run(self, case: Case) -> Result:
        if self._ended.is_set():
            raise _StoppedError
        faults = [each for each in check_quotas(plan(case.job), self.region) if each.state == "fault"]
        if faults:
            return Result(case.name, "not run", "; ".join(f"{each.message}: {each.fix}" for each in faults))
        most = price_of(case, self.region).usd
        if not self._budget.take(case, most):
            left = self.limit - self._budget.usd
            told = f"it can cost {most:.2f} USD, and {left:.2f} are left of the limit of {self.limit:.2f}"
            return Result(case.name, "not run", told)
        job = self._prepare(case)
        self._made.begin(f"job {case.name}")
        self._apply(case, job)
        records = self._runs(case, job)
        usd = self._budget.settle(case, records)
        result = replace(self._judged(case, records), usd=usd)
        self.tell(case.name, "destroying")
        self._destroy(case.name, job, self._ground)
        return result

    def _judged(self, case: Case, records: Sequence[RunRecord]) -> Result:
        runs = [seen.of_run(record) for record in records]
        file = self._write(case, runs)
        status, why = case.judged(records, [seen.warm_pool(run) for run in runs])
        if status == "as expected":
            why = "; ".join(self._compared(case, runs))
        return Result(case.name, status, why, file=file)

    def _write(self, case: Case, runs: list[dict[str, Any]]) -> str:
        self.out.mkdir(parents=True, exist_ok=True)
        about = {
            "case": case.name,
            "cloud": self.target.name,
            "region": self.region,
            "on": f"{datetime.now(timezone.utc):%Y-%m-%d}",
            "sagefit": __version__,
        }
        path = self.out / f"{case.name}.json"
        path.write_text(json.dumps(about | {"runs": runs}, indent=2) + "\n", encoding="utf-8")
        return str(path)

    def _compared(self, case: Case, runs: list[dict[str, Any]]) -> list[str]:
        path = self.before / f"{case.name}.json" if self.before else None
        if path is None or not path.exists():
            return []
        return list(seen.differences(runs, json.loads(path.read_text(encoding="utf-8"))["runs"]))

    # What a case does.

    def _runs(self, case: Case, job: Job) -> list[RunRecord]:
        if case.does == "schedule":
            return [self._follow(case, self._scheduled(case, job))]
        if case.does == "apply_twice":
            script = job.path.parent / "code" / "train.py"
            script.write_text(script.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
            self._apply(case, job)
            if _NO_CHANGES not in (told := self._ground.command(job.platform, "plan", str(job.path))):
                message = f"after a second apply the plan still shows changes: {told[-_TOLD:]}"
                raise SagefitError(message, exit_code=FAILED)
        return [
            self._follow(case, running.start(job, load_platform(job.platform)), stop=case.does == "stop")
            for _ in case.expects
        ]

    def _prepare(self, case: Case) -> Job:
        """A copy of the job and all that it refers to: it is rendered there, and two cases change theirs."""
        path = self._job_file(case.name)
        shutil.copytree(JOBS, path.parent, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        text = path.read_text(encoding="utf-8")
        if case.does == "schedule":
            when = datetime.now(timezone.utc) + (_LOCAL_AHEAD if self.target.is_local else _AWS_AHEAD)
            text = _SCHEDULE.sub(f"schedule: at({when:%Y-%m-%dT%H:%M:%S})", text)
        if self.target.is_local:
            text = text.replace("poll_interval: 10s", "poll_interval: 1s")
        path.write_text(text, encoding="utf-8")
        return load_job(str(path))

    def _job_file(self, case: str) -> Path:
        return self._folder / "jobs" / case / f"{case}.yaml"

    def _apply(self, case: Case, job: Job) -> None:
        self.tell(case.name, "applying")
        self._ground.command(job.platform, "plan", str(job.path))
        self._ground.command(job.platform, "apply", str(job.path))

    def _destroy(self, name: str, job: Job, ground: Ground) -> None:
        self.tell(name, "destroying")
        ground.command(job.platform, "destroy", str(job.path), "--yes")
        self._made.gone(f"job {name}")

    def _scheduled(self, case: Case, job: Job) -> Run:
        """The run that the schedule starts."""
        self.tell(case.name, "waiting for the schedule")
        ahead = _LOCAL_AHEAD if self.target.is_local else _AWS_AHEAD
        until = time.monotonic() + ahead.total_seconds() + _LATE_SECONDS
        while time.monotonic() < until:
            self._pause()
            if found := running.latest_runs(job.name, load_platform(job.platform), limit=1):
                return found[0]
        raise SagefitError(f"the schedule has started nothing {_LATE_SECONDS} s after its time", exit_code=FAILED)

    def _follow(self, case: Case, run: Run, *, stop: bool = False) -> RunRecord:
        """A run to its end; with ``stop`` that comes once its script works."""
        said = ""
        while True:
            try:
                record = running.read_run(run)
            except CONNECTION_LOST:
                self._pause()
                continue
            if record.is_over and all(attempt.outcome for attempt in record.attempts):
                return record
            last = record.attempts[-1] if record.attempts else None
            now = f"{last.name}: {last.outcome or last.status}" if last else record.status
            if now != said:
                said = now
                self.tell(case.name, now)
            if stop and last and self._works(last.training_job):
                self.tell(case.name, "stopping")
                running.stop(run)
                stop = False
            self._pause()

    def _works(self, training_job: str) -> bool:
        """Whether the script of a training job runs."""
        return sagemaker().describe_training_job(TrainingJobName=training_job)["SecondaryStatus"] == _WORKS

    def _pause(self) -> None:
        if self._ended.wait(_LOCAL_SECONDS if self.target.is_local else _AWS_SECONDS):
            raise _StoppedError
