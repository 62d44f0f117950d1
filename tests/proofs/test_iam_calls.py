"""What the commands really ask of AWS is allowed to engineers, resource by resource, and known to the proofs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cloud.aws_user import Aws
from job_files import write_job
from proofs import calls, recorded
from proofs.failing_cloud import create
from proofs.planned import Planned
from sagefit.iam.evaluate import Call, allows
from sagefit.paths import ROOT

pytestmark = pytest.mark.xdist_group("plans")

Command = Callable[..., str]


@pytest.fixture(scope="module")
def made(aws: Aws, planned: Planned, tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    """The calls of start, watch, runs, diagnose and stop, for a run that ends and for one that is stopped."""
    folder = tmp_path_factory.mktemp("commands")
    record = folder / "calls.jsonl"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    environment |= {
        "CLOUD": "local",
        "PYTHONPATH": str(ROOT / "tests"),
        "NO_COLOR": "1",
        recorded.VARIABLE: str(record),
    }

    def sagefit(*arguments: str | Path, code: int = 0) -> str:
        command = [sys.executable, "-m", "proofs.recorded", *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout.split()[-1] if done.stdout else ""

    jobs = {}
    for name, wait in (("ends", 0), ("waits", 600)):
        create(aws, f"sagefit-minimal-{name}", planned.definitions()["quickstart"], wait)
        (folder / name).mkdir()
        jobs[name] = write_job(folder / name, {"name": name, "platform": "minimal"}, file=f"{name}.yaml")
    run = sagefit("start", jobs["ends"])
    sagefit("watch", run, code=1)
    for reference in (run, jobs["ends"]):
        sagefit("runs", reference)
        sagefit("diagnose", reference)
    sagefit("stop", sagefit("start", jobs["waits"]))
    return recorded.calls(record, planned.document("minimal"))


def test_commands_made_all_kinds_of_calls(made: list[Call]) -> None:
    """The record is worth something only if the commands did their work."""
    assert {call.action for call in made} >= {
        "ssm:GetParameter",
        "states:StartExecution",
        "states:ListExecutions",
        "states:ListStateMachines",
        "states:DescribeExecution",
        "states:StopExecution",
        "sagemaker:ListTrainingJobs",
        "sagemaker:ListProcessingJobs",
        "sagemaker:DescribeTrainingJob",
        "logs:DescribeLogStreams",
    }


def test_engineer_may_make_every_call(made: list[Call], planned: Planned) -> None:
    policies = planned.engineer("minimal")
    assert [str(call) for call in made if not allows(policies, call)] == []


def test_every_call_is_on_the_list_of_the_proofs(made: list[Call], planned: Planned) -> None:
    listed = {call.action for call in calls.of_an_engineer(planned.document("minimal"), "ends")}
    assert {call.action for call in made} <= listed


def test_another_platform_s_engineer_may_not(made: list[Call], planned: Planned) -> None:
    """Of the calls that name something of a platform, none is allowed to engineers of another one."""
    policies = planned.engineer("private")
    own = [call for call in made if "minimal" in call.resource]
    assert len(own) > 5
    assert [str(call) for call in own if allows(policies, call)] == []
