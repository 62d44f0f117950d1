"""Start a run: from the beginning, or with the checkpoints of an earlier one."""

from __future__ import annotations

import json
import random
import time
import uuid
from datetime import datetime, timezone

from botocore.exceptions import ClientError

from sagefit.console import command
from sagefit.errors import SagefitError
from sagefit.job import Job
from sagefit.machine import read_definition
from sagefit.platform import Platform, load_platform
from sagefit.running import resuming
from sagefit.running.clients import step_functions
from sagefit.running.ledger import read_run
from sagefit.running.records import Run


def start(
    job: Job, platform: Platform | None = None, *, resume: Run | None = None, tell: resuming.Tell | None = None
) -> Run:
    """Start a run of an applied job with one call; the state machine does the rest.

    Without ``platform``, it is read from AWS. With ``resume``, a run of the same job that is over, the new run begins
    with a copy of its checkpoints; ``tell`` then hears what is copied, and what has changed in the job since.
    Raises SagefitError when the job or its platform was never applied, or ``resume`` has nothing to begin with.
    """
    platform = platform or load_platform(job.platform)
    say = tell or (lambda _: None)
    kept = _checked(job, platform, resume, say) if resume else None
    # AWS takes two requests that are the same for one that is repeated: two starts of one second would be one run.
    given = {"start": uuid.uuid4().hex} | ({"resumes": resume.name} if resume else {})
    while True:
        name = f"{job.name}-{datetime.now(timezone.utc):%y%m%d-%H%M%S}"
        run = Run(name, job.name, platform)
        if kept:
            # Whoever else starts a run in this very second has done so after it, and the folder belongs to one run.
            time.sleep(1 + random.random())  # noqa: S311 - two that resume should not look at once
            if not resuming.is_free(run):
                continue
            resuming.copy(kept, name, say)
        try:
            step_functions().start_execution(
                stateMachineArn=platform.state_machine_arn(job.name), name=name, input=json.dumps(given)
            )
        except ClientError as error:
            if kept:  # other errors leave open whether the run was started
                resuming.remove(kept, name)
            code = error.response["Error"]["Code"]
            if code == "ExecutionAlreadyExists":  # another run of this very second has the name
                time.sleep(1)
                continue
            if code == "StateMachineDoesNotExist":
                raise _not_applied(job, platform) from error
            raise
        return run


def _checked(job: Job, platform: Platform, run: Run, tell: resuming.Tell) -> resuming.Checkpoints:
    try:
        machine = step_functions().describe_state_machine(stateMachineArn=platform.state_machine_arn(job.name))
    except ClientError as error:
        if error.response["Error"]["Code"] == "StateMachineDoesNotExist":
            raise _not_applied(job, platform) from error
        raise
    definition = read_definition(machine["definition"])
    if definition:  # what is applied may differ from the job file
        words, searches = definition.words, definition.attempts[0].tuning is not None
        resuming.check_reads(job, searches=searches, reads=bool(words.get("resources.checkpoints")))
    kept = resuming.resumable(job, platform, run, tell)
    attempts = read_run(run).attempts
    if definition and attempts and (changed := resuming.differences(definition, attempts[-1])):
        tell(f"look again: since {run.name} this has changed: {'; '.join(changed)}")
    return kept


def _not_applied(job: Job, platform: Platform) -> SagefitError:
    return SagefitError(
        f"{job.name} is not applied on the platform {platform.name}",
        hint=f"apply it: {command('plan', job.reference)}, then {command('apply', job.reference)}",
    )
