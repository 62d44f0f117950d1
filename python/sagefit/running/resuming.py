"""The checkpoints of an earlier run, copied for a new one: the two runs never write into one folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from rich.filesize import decimal as size

from sagefit.answers import understood
from sagefit.console import command
from sagefit.errors import FAILED, SagefitError
from sagefit.job import Job
from sagefit.machine import Definition
from sagefit.machine.definition import HIDDEN
from sagefit.platform import Platform
from sagefit.running.clients import s3, step_functions
from sagefit.running.execution import training_jobs
from sagefit.running.ledger import read_run
from sagefit.running.records import AttemptRecord, Run, RunRecord
from sagefit.secret_names import is_secret_name

if TYPE_CHECKING:
    from mypy_boto3_sagemaker.type_defs import TrainingJobSummaryTypeDef

Tell = Callable[[str], None]
"""Hears what is being done, in a few words."""

_AT_ONCE = 8  # copies
_LOOK_SECONDS = 2.0
_SAID_SECONDS = 15.0  # between two lines about a copy that goes on
_ENDING = ("InProgress", "Stopping")


@dataclass(frozen=True)
class _File:
    bytes: int
    etag: str


@dataclass(frozen=True)
class Checkpoints:
    """The files that a run left in its folder of checkpoints, by their names in it."""

    run: Run
    files: dict[str, _File]

    @property
    def place(self) -> str:
        """Their bucket and folder."""
        return f"{self.run.platform.buckets.checkpoints}/{_folder(self.run.job, self.run.name)}"

    @property
    def bytes(self) -> int:
        """Their sizes, added up."""
        return sum(file.bytes for file in self.files.values())

    def __str__(self) -> str:
        many = len(self.files)
        return f"{many} {'file' if many == 1 else 'files'}, {size(self.bytes)}"


def checkpoints_of(run: Run) -> Checkpoints:
    """What the run has in its folder of checkpoints now. Raises ClientError where it may not be listed."""
    folder = _folder(run.job, run.name)
    pages = s3().get_paginator("list_objects_v2").paginate(Bucket=run.platform.buckets.checkpoints, Prefix=folder)
    listed = (item for page in pages for item in page.get("Contents", []))
    return Checkpoints(run, {each["Key"][len(folder) :]: _File(each["Size"], each["ETag"]) for each in listed})


def is_free(run: Run) -> bool:
    """Whether nobody has a run of this name, or prepares one."""
    try:
        step_functions().describe_execution(executionArn=run.arn)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ExecutionDoesNotExist":
            raise
        return not checkpoints_of(run).files
    return False


def resumable(job: Job, platform: Platform, run: Run, tell: Tell) -> Checkpoints:
    """The checkpoints of ``run``, with which a new run of ``job`` can begin.

    Waits while a training job of the run saves its last ones. Raises SagefitError when the run is of another job or
    platform, is not over, or left no checkpoints, or when the job reads none.
    """
    check_reads(job, searches=job.tuning is not None, reads=job.resources.checkpoints)
    if run.job != job.name:
        raise SagefitError(
            f"--resume: {run.name} is a run of {run.job}, not of {job.name}: checkpoints are read by the job that wrote"
            " them",
            hint=f"choose one of these: {command('runs', job.reference)}",
        )
    if run.platform.name != platform.name:
        raise SagefitError(
            f"--resume: {run.name} ran on the platform {run.platform.name}, and {job.name} runs on {platform.name}",
            hint=f"choose a run of this platform: {command('runs', job.reference)}",
        )
    record = read_run(run)
    if not record.is_over:
        raise SagefitError(
            f"--resume: {run.name} is not over, and still writes its checkpoints",
            hint=f"stop it first: {command('stop', run.name)}; or follow it: {command('watch', run.name)}",
            exit_code=FAILED,
        )
    while ending := _ending(record):
        tell(f"{ending[0]['TrainingJobName']} has yet to end, and may still save a checkpoint")
        time.sleep(_LOOK_SECONDS)
    with _explained(run):
        found = checkpoints_of(run)
    if not found.files:
        raise SagefitError(
            f"--resume: {run.name} left no checkpoints in s3://{found.place}",
            hint="a script writes them to the folder in SM_CHECKPOINT_DIR; they expire after the platform's"
            f" checkpoint_days. Start from the beginning: {command('start', job.reference)}",
            exit_code=FAILED,
        )
    return found


def _ending(record: RunRecord) -> list[TrainingJobSummaryTypeDef]:
    listed = training_jobs(record.run, record.started, record.ended)
    return [each for each in listed if each["TrainingJobStatus"] in _ENDING]


def check_reads(job: Job, *, searches: bool, reads: bool) -> None:
    """Raises SagefitError where no run of the job would read checkpoints: one that searches, or that has none."""
    if searches:
        raise SagefitError(
            f"--resume: {job.name} searches hyperparameters (tuning): its trials are new ones, and each reads its own"
            " checkpoints only",
            hint=f"start a new search: {command('start', job.reference)}",
        )
    if not reads:
        raise SagefitError(
            f"--resume: a run of {job.name} reads no checkpoints: resources.checkpoints is false",
            hint=f"set resources.checkpoints: true, then {command('run', job.reference)} with --resume",
        )


def differences(definition: Definition, before: AttemptRecord) -> list[str]:
    """What a script that reads old checkpoints will find changed: its code and hyperparameters, in words of a job file.

    ``before`` is an attempt of the earlier run. It is compared with the attempt of its name, else with the first.
    """
    names = [attempt.name for attempt in definition.attempts]
    now = definition.hyperparameters[before.name if before.name in names else names[0]]
    found = ["code"] if before.code != definition.words.get("code.digest", "") else []
    for key in sorted({*now, *before.hyperparameters}):
        old, new = before.hyperparameters.get(key), now.get(key)
        if old != new:
            found.append(f"hyperparameters.{key}: {_said(key, old)} -> {_said(key, new)}")
    return found


def copy(checkpoints: Checkpoints, name: str, tell: Tell) -> None:
    """Copy the checkpoints to the folder of a run with this name, which is to be started.

    S3 copies by itself: nothing is downloaded. Raises SagefitError if they cannot be copied, or change meanwhile; what
    was copied by then is removed, as when the user interrupts.
    """
    run = checkpoints.run
    try:
        with _explained(run):
            _copy(checkpoints, name, tell)
            there = checkpoints_of(Run(name, run.job, run.platform)).files
        if {key: file.bytes for key, file in there.items()} != {k: file.bytes for k, file in checkpoints.files.items()}:
            raise SagefitError(
                f"--resume: the folder of {name} does not hold what was copied from {run.name}",
                hint="somebody else writes there; try again",
                exit_code=FAILED,
            )
    except BaseException:
        remove(checkpoints, name)
        raise


def remove(checkpoints: Checkpoints, name: str) -> None:
    """Take back what was copied for a run that was not started. What may not be removed expires in its time."""
    run = checkpoints.run
    with contextlib.suppress(ClientError, BotoCoreError):
        for key in checkpoints.files:
            s3().delete_object(Bucket=run.platform.buckets.checkpoints, Key=_folder(run.job, name) + key)


def _copy(checkpoints: Checkpoints, name: str, tell: Tell) -> None:
    run = checkpoints.run
    bucket = run.platform.buckets.checkpoints
    old, new = _folder(run.job, run.name), _folder(run.job, name)

    def one(key: str, file: _File) -> int:
        source = {"Bucket": bucket, "Key": old + key}
        s3().copy(source, bucket, new + key, ExtraArgs={"CopySourceIfMatch": file.etag})  # type: ignore[arg-type]
        return file.bytes

    tell(f"copying the checkpoints of {run.name}: {checkpoints}")
    done, said = 0, time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            copies = [pool.submit(one, key, file) for key, file in checkpoints.files.items()]
            for copy in as_completed(copies):
                done += copy.result()
                if time.monotonic() - said > _SAID_SECONDS:
                    tell(f"copying the checkpoints of {run.name}: {size(done)} of {size(checkpoints.bytes)}")
                    said = time.monotonic()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
def _explained(run: Run) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in ("PreconditionFailed", "412", "NoSuchKey", "404"):
            raise SagefitError(
                f"--resume: the checkpoints of {run.name} changed while they were copied",
                hint="something else writes or deletes them; try again",
                exit_code=FAILED,
            ) from error
        if busy := understood(error, f"--resume: the checkpoints of {run.name} cannot be copied"):
            raise busy from error
        place = f"{run.platform.buckets.checkpoints}/{_folder(run.job, '')}*"
        raise SagefitError(
            f"--resume: the checkpoints of {run.name} cannot be copied: {error}",
            hint="whoever resumes a run needs s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject on"
            f" {place}, and kms:Decrypt and kms:GenerateDataKey on the platform's key where it has one; the platform's"
            " engineer_policy_json has none of these",
            exit_code=FAILED,
        ) from error


def _folder(job: str, run: str) -> str:
    """As CheckpointConfig has it in modules/training-job/attempts.tf."""
    return f"jobs/{job}/{run}/" if run else f"jobs/{job}/"


def _said(key: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return HIDDEN if is_secret_name(key) else value
