"""The main job on real parts: Terraform, the AWS provider, a state machine, a process that is really killed."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import World
from job_files import write_job
from sagefit import toolchain
from sagefit.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("e2e")]


def last_run(world: World) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(world.sagefit("runs", "quickstart", "--json", "--limit", "1").out)
    return record


def test_the_first_attempt_is_killed_and_the_second_succeeds(world: World) -> None:
    first, second = last_run(world)["attempts"]
    assert (first["name"], first["outcome"]) == ("in-memory", "host_memory")
    assert "signal 9" in first["evidence"]
    assert (second["name"], second["outcome"]) == ("streaming", "completed")
    assert second["host_peak_gib"] < first["host_peak_gib"]


def test_the_ledger_the_metric_and_the_model_are_printed(world: World) -> None:
    out = world.first_run.out
    assert re.search(r"0 +in-memory +ml\.m5\.large +host_memory", out)
    assert re.search(r"1 +streaming +ml\.m5\.large +completed", out)
    accuracy = re.search(r"accuracy=([0-9.]+)", out)
    assert accuracy
    assert float(accuracy[1]) >= 0.95
    assert re.search(r"model: s3://\S+/model\.tar\.gz", out)


def test_the_model_can_be_read_back(world: World) -> None:
    bucket, _, key = last_run(world)["attempts"][-1]["model"].removeprefix("s3://").partition("/")
    body = world.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert "model.joblib" in [Path(name).name for name in archive.getnames()]


def test_the_second_attempt_resumed_from_the_checkpoint(world: World) -> None:
    name = last_run(world)["attempts"][-1]["training_job"]
    logs = world.client("logs")
    group = "/aws/sagemaker/TrainingJobs"
    streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=name)["logStreams"]
    events = logs.get_log_events(logGroupName=group, logStreamName=streams[0]["logStreamName"], startFromHead=True)
    assert any("resum" in event["message"].lower() for event in events["events"])


def test_from_start_to_the_training_job_takes_at_most_five_calls(world: World) -> None:
    before = len(world.sagefit.calls())
    run = world.sagefit("start", "quickstart").out.strip()
    world.sagefit("watch", run)
    actions = [call["action"] for call in world.sagefit.calls()[before:]]
    assert actions.index("CreateTrainingJob") < 5, actions


def test_plans_after_apply_are_empty(world: World) -> None:
    assert "No changes" in world.sagefit("plan", "quickstart").out
    assert "No changes" in world.sagefit("platform", "plan").out


def test_a_plan_makes_no_mutating_call(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "fresh"})
    before = len(world.sagefit.calls())
    assert "will be created" in world.sagefit("plan", job).out
    writes = [call for call in world.sagefit.calls()[before:] if call["kind"] != "read"]
    assert writes == []


def test_a_second_run_applies_nothing(world: World) -> None:
    before = len(world.sagefit.calls())
    done = world.sagefit("run", "quickstart", "--yes")
    assert "up to date" in done.err
    writes = {call["action"] for call in world.sagefit.calls()[before:] if call["kind"] == "write"}
    assert not {a for a in writes if a.startswith(("CreateState", "UpdateState", "PutRole", "CreateRole", "PutParam"))}


def test_apply_takes_exactly_the_saved_plan(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "saved"})
    assert "no saved plan" in world.sagefit("apply", job, check=2).err
    world.sagefit("plan", job)
    (tmp_path / "src" / "train.py").write_text("print('changed')\n", encoding="utf-8")
    assert "stale plan" in world.sagefit("apply", job, check=4).err
    world.sagefit("plan", job)
    world.sagefit("apply", job)
    assert "No changes" in world.sagefit("plan", job).out
    world.sagefit("destroy", job, "--yes")


def test_a_plan_that_the_state_outran_is_refused(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "outrun"})
    world.sagefit("plan", job)
    plans = world.sagefit.home / "cloud" / "terraform"
    saved = {path: path.read_bytes() for path in plans.rglob("outrun.*") if path.suffix in (".tfplan", ".json")}
    world.sagefit("apply", job)
    for path, content in saved.items():
        path.write_bytes(content)
    assert "stale" in world.sagefit("apply", job, check=4).err.lower()
    world.sagefit("destroy", job, "--yes")


def test_a_locked_state_is_refused(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "locked"})
    world.sagefit("plan", job)
    world.sagefit("apply", job)
    (state,) = (world.sagefit.home / "cloud" / "terraform").rglob("locked.tfstate")
    holder = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(["python3", "-c", holder, str(state)], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        done = world.sagefit("plan", job, check=2)
        process.kill()
    assert "state lock" in done.err
    assert "locked" in done.err
    world.sagefit("destroy", job, "--yes")


def test_a_job_on_an_unknown_platform_is_refused(world: World, tmp_path: Path) -> None:
    done = world.sagefit("plan", write_job(tmp_path, {"platform": "mars"}), check=2)
    assert "platform: no platform 'mars'" in done.err
    assert not list(tmp_path.glob("*.tfvars"))


def test_without_yes_nothing_is_applied(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "asked"})
    assert "not applied" in world.sagefit("run", job, check=4).err
    machines = world.client("stepfunctions").list_state_machines()["stateMachines"]
    assert not [machine for machine in machines if "asked" in machine["name"]]


def test_a_failing_script_ends_the_run_as_code(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "broken"})
    (tmp_path / "src" / "train.py").write_text("raise ValueError('no such column')\n", encoding="utf-8")
    done = world.sagefit("run", job, "--yes", check=1)
    assert re.search(r"0 +small +ml\.m5\.large +code", done.out)
    assert "ValueError: no such column" in done.out
    world.sagefit("destroy", job, "--yes")


def test_stop_ends_the_execution_and_the_training_job(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "endless", "resources.poll_interval": "1s", "resources.max_runtime": "10m"})
    (tmp_path / "src" / "train.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    world.sagefit("plan", job)
    world.sagefit("apply", job)
    run = world.sagefit("start", job).out.strip()
    sagemaker = world.client("sagemaker")
    while not sagemaker.list_training_jobs(NameContains=run)["TrainingJobSummaries"]:
        pass
    assert "stopped" in world.sagefit("stop", job).err
    while sagemaker.describe_training_job(TrainingJobName=f"{run}-0")["TrainingJobStatus"] in (
        "InProgress",
        "Stopping",
    ):
        pass
    assert sagemaker.describe_training_job(TrainingJobName=f"{run}-0")["TrainingJobStatus"] == "Stopped"
    assert "aborted" in world.sagefit("runs", job).out
    world.sagefit("destroy", job, "--yes")


def test_plain_terraform_applies_a_job(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "plain"})
    world.sagefit("render", job)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TF_"))}
    environment |= world.sagefit.aws_environment() | {"TF_DATA_DIR": str(tmp_path / "data")}
    terraform = [str(toolchain.terraform_binary(world.sagefit.home)), "-chdir=job"]
    variables = f"-var-file={tmp_path / 'plain.tfvars'}"
    for command in (
        [*terraform, "init", f"-backend-config=path={tmp_path / 'plain.tfstate'}"],
        [*terraform, "apply", "-auto-approve", variables],
        [*terraform, "destroy", "-auto-approve", variables],
    ):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_terraform_texts_of_the_user_stay_text(world: World, tmp_path: Path) -> None:
    evil = '${file("/etc/passwd")} %{ if true }x%{ endif }'
    job = write_job(tmp_path, {"name": "evil", "environment": {"EVIL": evil}, "description": evil})
    plan = world.sagefit("plan", job).out
    assert "root:" not in plan
    assert "file(" in plan


def test_destroy_leaves_nothing_behind(world: World) -> None:
    world.sagefit("destroy", "quickstart", "--yes")
    refused = world.sagefit("platform", "destroy", "--yes", check=1)
    assert "BucketNotEmpty" in refused.err
    s3 = world.client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket["Name"]):
            for item in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
                s3.delete_object(Bucket=bucket["Name"], Key=item["Key"], VersionId=item["VersionId"])
    world.sagefit("platform", "destroy", "--yes")
    left = {
        "buckets": s3.list_buckets()["Buckets"],
        "machines": world.client("stepfunctions").list_state_machines()["stateMachines"],
        "roles": [r for r in world.client("iam").list_roles()["Roles"] if "sagefit" in r["RoleName"]],
        "parameters": world.client("ssm").describe_parameters()["Parameters"],
        "topics": world.client("sns").list_topics()["Topics"],
        "alarms": world.client("cloudwatch").describe_alarms()["MetricAlarms"],
        "rules": world.client("events").list_rules()["Rules"],
        "repositories": world.client("ecr").describe_repositories()["repositories"],
        "dashboards": world.client("cloudwatch").list_dashboards()["DashboardEntries"],
        "logs": [
            g
            for g in world.client("logs").describe_log_groups()["logGroups"]
            if g["logGroupName"] != "/aws/sagemaker/TrainingJobs"  # SageMaker's own, with the users' logs
        ],
    }
    assert {kind: found for kind, found in left.items() if found} == {}
