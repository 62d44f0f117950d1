"""The main job on real parts: Terraform, the AWS provider, a state machine, a process that is really killed."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

import sagefit
from checkout import copy_tree
from cli_runner import Sagefit
from e2e.conftest import NEWEST, World
from job_files import write_job
from sagefit import toolchain
from sagefit.paths import ROOT
from sagefit.terraform.backend import EMBEDDED_BUCKET
from waiting import command_lines, wait_until

pytestmark = pytest.mark.xdist_group("e2e")


def last_run(world: World) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(world.sagefit("runs", "quickstart", "--json", "--limit", "1").out)
    return record


def test_the_first_attempt_is_killed_and_the_second_succeeds(world: World) -> None:
    first, second = last_run(world)["attempts"]
    assert (first["name"], first["outcome"]) == ("in-memory", "host_memory")
    assert "signal 9" in first["evidence"]
    assert (second["name"], second["outcome"]) == ("streaming", "completed")
    assert second["host_peak_gib"] < first["host_peak_gib"]
    assert 0 <= first["lost_seconds"] <= first["billable_seconds"]
    assert (second["lost_seconds"], second["model_is_empty"]) == (None, False)


def test_the_ledger_the_metric_and_the_model_are_printed(world: World) -> None:
    out = world.first_run.out
    assert re.search(r"0 +in-memory +ml\.m5\.large +host_memory", out)
    assert re.search(r"1 +streaming +ml\.m5\.large +completed", out)
    accuracy = re.search(r"accuracy=([0-9.]+)", out)
    assert accuracy
    assert float(accuracy[1]) >= 0.95
    assert re.search(r"model: s3://\S+/model\.tar\.gz", out)


def test_what_is_different_on_the_embedded_cloud_is_said(world: World) -> None:
    said = next(line for line in world.first_run.err.splitlines() if line.startswith("embedded cloud: "))
    assert "an instance has 1/16 of its memory and volume" in said
    assert re.search(r"scikit-learn \d+\.\d+\S* stands in for sklearn 1\.2-1; instances start at once$", said)


def test_a_run_is_diagnosed_with_a_remedy(world: World) -> None:
    done = world.sagefit("diagnose", "quickstart")
    assert done.err == "attempt 0 in-memory:\n"
    assert done.out.startswith("host_memory\nevidence: train.py was killed (signal 9)")
    assert "next.host_memory" in done.out
    assert json.loads(world.sagefit("diagnose", "quickstart", "--json").out)["class"] == "host_memory"


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
    """The example with which the package describes itself, on what ``cloud env`` prints."""
    before = len(world.sagefit.calls())
    example = textwrap.dedent("\n".join(re.findall(r"^    .*", sagefit.__doc__ or "", re.MULTILINE)))
    quick = "import time, sagefit\nnap = time.sleep\ntime.sleep = lambda seconds: nap(min(seconds, 0.2))\n"
    done = subprocess.run(
        [sys.executable, "-c", quick + example],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **world.sagefit.aws_environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line.split() for line in done.stdout.splitlines()]
    assert [words[:3] for words in told] == [
        ["in-memory", "ml.m5.large", "host_memory"],
        ["streaming", "ml.m5.large", "completed"],
    ]
    assert all(float(words[3]) > 0.1 for words in told)
    calls = world.sagefit.calls()[before:]
    started = [call["action"] for call in calls].index("StartExecution")
    # Once it is started, whoever watches asks as often as there is time for, and nothing waits for the answers.
    on_the_way = [call["action"] for at, call in enumerate(calls) if at <= started or call["kind"] == "write"]
    assert on_the_way.index("CreateTrainingJob") < 5, on_the_way


def test_plans_after_apply_are_empty(world: World) -> None:
    assert "No changes" in world.sagefit("plan", "quickstart").out
    assert "No changes" in world.sagefit("platform", "plan").out


def test_doctor_finds_nothing_wrong_and_changes_nothing(world: World) -> None:
    before = len(world.sagefit.calls())
    lines = world.sagefit("doctor", "quickstart").out.splitlines()
    assert len(lines) >= 9
    assert [line for line in lines if not line.startswith("ok ")] == []
    assert {call["kind"] for call in world.sagefit.calls()[before:]} == {"read"}


def test_a_plan_makes_no_mutating_call(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "fresh"})
    before = len(world.sagefit.calls())
    assert "will be created" in world.sagefit("plan", job).out
    writes = [call for call in world.sagefit.calls()[before:] if call["kind"] != "read"]
    assert writes == []


@pytest.mark.full(witness="tests/e2e/test_main_path.py::test_plans_after_apply_are_empty")
def test_a_second_run_applies_nothing(world: World) -> None:
    before = len(world.sagefit.calls())
    done = world.sagefit("run", "quickstart", "--yes")
    assert "up to date" in done.err
    writes = {call["action"] for call in world.sagefit.calls()[before:] if call["kind"] == "write"}
    assert not {a for a in writes if a.startswith(("CreateState", "UpdateState", "PutRole", "CreateRole", "PutParam"))}


def test_what_terraform_alone_can_refuse_is_told_in_the_words_of_the_job_file(world: World, tmp_path: Path) -> None:
    """A policy that is too long is known when it is written."""
    bucket = "sagefit-dev-123456789012-us-east-1-data"
    inputs = {f"part-{index}": f"s3://{bucket}/{index}/{'long-name/' * 90}" for index in range(12)}
    job = write_job(tmp_path, {"name": "wide", "inputs": inputs})
    line = next(n for n, text in enumerate(job.read_text(encoding="utf-8").splitlines(), 1) if text == "inputs:")
    said = world.sagefit("plan", job, check=2).err
    assert f"digits.yaml:{line}: inputs, processing[*].inputs: the policy of the job's role has about" in said
    assert "Give prefixes one parent, or set resources.role" in said
    assert "correct " in said
    assert "main.tf" not in said
    assert "channels" not in said


def test_apply_takes_exactly_the_saved_plan(world: World, scratch: Path) -> None:
    assert "no saved plan" in world.sagefit("apply", scratch, check=2).err
    script = scratch.with_name("src") / "train.py"
    script.write_text("print('planned')\n", encoding="utf-8")
    world.sagefit("plan", scratch)
    script.write_text("print('not planned')\n", encoding="utf-8")
    assert "stale plan" in world.sagefit("apply", scratch, check=4).err
    script.write_text("print('planned')\n", encoding="utf-8")
    world.sagefit("apply", scratch)


def test_a_job_file_that_changed_after_its_plan_is_refused(world: World, scratch: Path) -> None:
    before = scratch.read_text(encoding="utf-8")
    try:
        world.sagefit("plan", scratch)
        scratch.write_text(before.replace("epochs: 3", "epochs: 4"), encoding="utf-8")
        assert "stale plan" in world.sagefit("apply", scratch, check=4).err
        scratch.write_text(before + "max_price: 0.001\n", encoding="utf-8")
        assert "max_price" in world.sagefit("apply", scratch, check=4).err
    finally:
        scratch.write_text(before, encoding="utf-8")


@pytest.mark.full(witness="tests/e2e/test_main_path.py::test_ctrl_c_leaves_the_run_alone")
def test_ctrl_c_waits_for_terraform(world: World, tmp_path: Path) -> None:
    """The interrupt goes to the whole foreground group, as a terminal sends it."""
    job = write_job(tmp_path, {"name": "interrupted"})
    for number in range(150):
        (tmp_path / "src" / f"{number}.py").write_text("", encoding="utf-8")
    world.sagefit("plan", job)
    applying = [sys.executable, "-m", "sagefit", "apply", str(job)]
    options: dict[str, Any] = {"cwd": ROOT, "env": world.sagefit.environment, "start_new_session": True}
    with (
        world.destroying(job),
        subprocess.Popen(applying, stderr=subprocess.PIPE, text=True, **options) as process,
    ):
        s3 = world.client("s3")
        bucket = "sagefit-dev-123456789012-us-east-1-data"
        wait_until(lambda: "Contents" in s3.list_objects_v2(Bucket=bucket, Prefix="jobs/interrupted/"))
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr
        said = process.stderr.read()
        assert process.wait() == 130
        assert "waiting for Terraform to stop" in said
        assert not [command for command in command_lines() if command.endswith("interrupted.tfplan")]
        world.sagefit("plan", job)  # the state is not locked


@pytest.mark.full(witness="tests/interruptions/test_recover.py::test_what_is_not_of_the_stack_is_left_alone")
def test_a_lost_state_is_made_again(world: World, tmp_path: Path) -> None:
    """All that a platform and a job consist of is found by the names that a plan would give it."""
    job = write_job(tmp_path, {"name": "lost"})
    with world.destroying(job):
        world.sagefit("plan", job)
        world.sagefit("apply", job)
        for stack, planning in (("dev/platform", ("platform", "plan")), (job, ("plan", job))):
            key = "dev/jobs/lost" if stack == job else str(stack)
            (state,) = world.sagefit.home.rglob(f"states/{key}.tfstate")
            state.unlink()
            assert "to take into the state" in world.sagefit("recover", stack, "--yes").err
            assert "to add" not in world.sagefit(*planning).out  # at most an output, which the next apply writes


@pytest.mark.full(witness="tests/e2e/test_main_path.py::test_apply_takes_exactly_the_saved_plan")
def test_a_plan_that_the_state_outran_is_refused(world: World, scratch: Path) -> None:
    (scratch.with_name("src") / "train.py").write_text("print('once')\n", encoding="utf-8")
    world.sagefit("plan", scratch)
    plans = world.sagefit.home / "cloud" / "terraform"
    saved = {path: path.read_bytes() for path in plans.rglob("scratch.*") if path.suffix in (".tfplan", ".json")}
    assert len(saved) == 2
    world.sagefit("apply", scratch)
    for path, content in saved.items():
        path.write_bytes(content)
    assert "Saved plan is stale" in world.sagefit("apply", scratch, check=4).err


def test_a_locked_state_is_refused(world: World, scratch: Path) -> None:
    (state,) = (world.sagefit.home / "cloud" / "terraform").rglob("scratch.tfstate")
    holder = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(state)], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        done = world.sagefit("plan", scratch, check=2)
        process.kill()
    assert "Error acquiring the state lock" in done.err


def test_no_terraform_is_said(world: World, scratch: Path) -> None:
    done = world.sagefit("plan", scratch, check=2, PATH=str(scratch.parent))
    assert "Terraform >= 1.10 not found" in done.err
    assert "make setup" in done.err


def test_no_provider_is_said(world: World, scratch: Path) -> None:
    done = world.sagefit("plan", scratch, check=2, SAGEFIT_PLUGIN_MIRROR=str(scratch.parent))
    assert "SAGEFIT_PLUGIN_MIRROR" in done.err
    assert "hashicorp/aws" in done.err


def test_a_job_on_an_unknown_platform_is_refused(world: World, tmp_path: Path) -> None:
    done = world.sagefit("plan", write_job(tmp_path, {"platform": "mars"}), check=2)
    assert "platform: no platform 'mars'" in done.err
    assert not list(tmp_path.glob("*.tfvars"))


def test_without_yes_nothing_is_applied(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "asked"})
    assert "not applied" in world.sagefit("run", job, check=4).err
    machines = world.client("stepfunctions").list_state_machines()["stateMachines"]
    assert not [machine for machine in machines if "asked" in machine["name"]]


def test_a_failing_script_ends_the_run_as_code(world: World, scratch: Path) -> None:
    (scratch.with_name("src") / "train.py").write_text("raise ValueError('no such column')\n", encoding="utf-8")
    done = world.sagefit("run", scratch, "--yes", check=1)
    assert re.search(r"0 +small +ml\.m5\.large +code", done.out)
    assert "ValueError: no such column" in done.out
    assert "failed: Sagefit.code" in done.out
    run = done.out.split(":")[0].split()[-1]
    assert re.search(rf"^to see why, and what would have held it: \S*sagefit .*diagnose {run}$", done.err, re.MULTILINE)


def test_ctrl_c_leaves_the_run_alone(world: World) -> None:
    run = world.sagefit("start", "quickstart").out.strip()
    watching = [sys.executable, "-m", "sagefit", "watch", run, "--logs"]
    with (
        world.stopping(run),
        subprocess.Popen(
            watching, cwd=ROOT, env=world.sagefit.environment, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr
        assert any("epoch 1 shard 1" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait() == 130
        assert f"the run goes on. Follow it: sagefit --cloud local watch {run}" in said
        assert "Traceback" not in said
        assert "succeeded" in world.sagefit("watch", run).out


@pytest.mark.full(witness="tests/e2e/test_processing.py::test_stop_ends_the_step_that_runs")
def test_stop_ends_the_execution_and_the_training_job(world: World, scratch: Path) -> None:
    (scratch.with_name("src") / "train.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    world.sagefit("plan", scratch)
    world.sagefit("apply", scratch)
    run = world.sagefit("start", scratch).out.strip()
    with world.stopping(run):
        sagemaker = world.client("sagemaker")
        wait_until(lambda: sagemaker.list_training_jobs(NameContains=run, **NEWEST)["TrainingJobSummaries"])

        (scratch.with_name("src") / "train.py").write_text("print('new code')\n", encoding="utf-8")
        world.sagefit("plan", scratch)
        assert f"{run} is in progress" in world.sagefit("apply", scratch, check=4).err
        (scratch.with_name("src") / "train.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
        other_role = yaml.safe_load(scratch.read_text(encoding="utf-8"))
        other_role["resources"]["role"] = "shared"
        scratch.write_text(yaml.safe_dump(other_role, sort_keys=False), encoding="utf-8")
        world.sagefit("plan", scratch)
        assert f"{run} is in progress" in world.sagefit("apply", scratch, check=4).err

        del other_role["resources"]["role"]
        other_role["attempts"].append({"name": "larger", "instance_type": "ml.m5.2xlarge", "max_runtime": "3m"})
        scratch.write_text(yaml.safe_dump(other_role, sort_keys=False), encoding="utf-8")
        world.sagefit("plan", scratch)
        assert "applied" in world.sagefit("apply", scratch).err  # what allows more takes nothing
        other_role["attempts"][1]["instance_type"] = "ml.c5.xlarge"
        scratch.write_text(yaml.safe_dump(other_role, sort_keys=False), encoding="utf-8")
        world.sagefit("plan", scratch)
        refused = world.sagefit("apply", scratch, check=4).err
        assert f"{run} is in progress" in refused
        assert "sagemaker:createtrainingjob under other conditions (sagemaker:instancetypes)" in refused
        assert "the state machine that runs it" in world.sagefit("destroy", scratch, "--yes", check=4).err

        assert "stopped" in world.sagefit("stop", run).err  # by its name, though its file is not in jobs/
        assert "is over already" in world.sagefit("stop", run, check=1).err

        def status() -> str:
            return str(sagemaker.describe_training_job(TrainingJobName=f"{run}-0")["TrainingJobStatus"])

        wait_until(lambda: status() not in ("InProgress", "Stopping"))
        assert status() == "Stopped"
        assert "aborted" in world.sagefit("runs", scratch).out


def terraform_succeeds(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.full(
    witness="tests/terraform/test_terraform.py::test_runs_that_expect_a_plan[tests/terraform/job.tftest.hcl]"
)
def test_plain_terraform_applies_a_job(world: World, tmp_path: Path) -> None:
    job = write_job(tmp_path, {"name": "plain"})
    world.sagefit("render", job)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TF_"))}
    environment |= world.sagefit.aws_environment() | {"TF_DATA_DIR": str(tmp_path / "terraform")}
    terraform = [str(toolchain.terraform_binary(world.sagefit.home)), "-chdir=job"]
    variables = f"-var-file={tmp_path / 'plain.tfvars'}"
    applied: list[list[str]] = [
        [*terraform, "init", f"-backend-config=path={tmp_path / 'plain.tfstate'}"],
        [*terraform, "apply", "-auto-approve", variables],
    ]
    try:
        for command in applied:
            terraform_succeeds(command, environment)
    finally:
        terraform_succeeds([*terraform, "destroy", "-auto-approve", variables], environment)


@pytest.mark.full(
    witness="tests/terraform/test_terraform_door.py::test_the_teams_backend_gets_a_key_of_its_own_for_each_state"
)
def test_a_teams_s3_backend_is_used(world: World, tmp_path: Path) -> None:
    copy_tree(tmp_path / "tree")
    page = (ROOT / "docs/state.md").read_text(encoding="utf-8")
    (override,) = re.findall(r"^```hcl\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "tree/job/backend_override.tf").write_text(override, encoding="utf-8")
    other = Sagefit(world.sagefit.home, CLOUD="local", PYTHONPATH=str(tmp_path / "tree/python"))
    job = write_job(tmp_path, {"name": "remote"})
    s3 = world.client("s3")
    try:
        other("plan", job)
        other("apply", job)
        (state,) = s3.list_objects_v2(Bucket=EMBEDDED_BUCKET)["Contents"]
        assert state["Key"] == "sagefit/dev/jobs/remote.tfstate"
        assert not list(world.sagefit.home.rglob("remote.tfstate"))
    finally:
        other("destroy", job, "--yes")
        s3.delete_object(Bucket=EMBEDDED_BUCKET, Key="sagefit/dev/jobs/remote.tfstate")
        s3.delete_bucket(Bucket=EMBEDDED_BUCKET)


@pytest.mark.full(witness="tests/planning/test_render.py::test_terraform_reads_back_every_trap")
def test_terraform_texts_of_the_user_stay_text(world: World, tmp_path: Path) -> None:
    evil = '${file("/etc/passwd")} %{ if true }x%{ endif }'
    job = write_job(tmp_path, {"name": "evil", "environment": {"EVIL": evil}, "description": evil})
    plan = world.sagefit("plan", job).out
    assert "root:" not in plan
    assert "file(" in plan
