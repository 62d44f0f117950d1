"""A run that is stopped in the middle, and a new one that begins where it ended, by the command that was printed."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from scenarios.conftest import Cloud
from scenarios.hard_runs import hanging, lines

pytestmark = pytest.mark.xdist_group("scenarios")

BUCKET = "sagefit-dev-123456789012-us-east-1-checkpoints"


def kept(cloud: Cloud, job: str, run: str) -> dict[str, tuple[str, str]]:
    """The files in the folder of checkpoints of a run: what they hold, and when they were written."""
    listed = cloud.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"jobs/{job}/{run}/").get("Contents", [])
    return {each["Key"].rpartition("/")[2]: (each["ETag"], str(each["LastModified"])) for each in listed}


def test_a_run_goes_on_where_another_was_stopped(hard: Cloud) -> None:
    job, old = hard.job("hard"), hanging(hard, 7)
    refused = hard.sagefit("start", job, "--resume", old, check=1).err
    assert f"{old} is not over" in refused

    stopped = hard.sagefit("stop", job).err
    assert re.search(rf"^{old} stopped; {old}-0 is stopping$", stopped, re.MULTILINE)
    printed = re.search(r"^to begin a run with its checkpoints: (.*)$", stopped, re.MULTILINE)
    assert printed, stopped
    words = shlex.split(printed[1])
    assert words[-5:] == ["local", "start", str(job), "--resume", old]

    done = hard.sagefit(*words[words.index("start") :])
    new = done.out.strip()
    assert f"copying the checkpoints of {old}: 1 file, 1 byte" in done.err
    was = kept(hard, "hard", old)
    assert hard.ended("hard", new)["status"] == "SUCCEEDED"
    assert lines(hard, f"{new}-0")[:2] == ["starts at step 3", "step 3 done"]
    assert kept(hard, "hard", old) == was
    assert kept(hard, "hard", new).keys() == was.keys()

    assert json.loads(hard.sagefit("runs", new, "--json").out)["resumes"] == old
    assert f"began with the checkpoints of {old}" in hard.sagefit("runs", new).out


@pytest.mark.parametrize(
    ("job", "rule"), [("bare", "is a run of rich, not of bare"), ("rich", "left no checkpoints in s3://")]
)
def test_what_cannot_be_resumed_is_refused(cloud: Cloud, job: str, rule: str) -> None:
    run = f"rich-261121-{900000 + len(rule)}"
    cloud.start("rich", run)
    cloud.ended("rich", run)
    before = len(cloud.client("stepfunctions").list_executions(stateMachineArn=_machine(job))["executions"])
    refused = cloud.sagefit("start", cloud.job(job), "--resume", run, check=2 if job == "bare" else 1).err
    assert rule in refused
    assert "hint: " in refused
    assert len(cloud.client("stepfunctions").list_executions(stateMachineArn=_machine(job))["executions"]) == before


def _machine(job: str) -> str:
    return f"arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-{job}"
