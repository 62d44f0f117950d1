"""The suite as a user runs it, on an embedded cloud: what it tells, writes, refuses, and leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from checkout import copy_tree
from cli_runner import Sagefit
from sagefit.acceptance import all_cases
from sagefit.errors import FAILED, REFUSED
from sagefit.paths import ACCEPTANCE, ROOT
from sagefit.terraform.backend import EMBEDDED_BUCKET, OVERRIDE

pytestmark = pytest.mark.xdist_group("acceptance")

WITNESS = "tests/acceptance/test_suite.py::test_a_case_runs_is_written_down_and_leaves_nothing"
_SECONDS = 550


@pytest.fixture(scope="module")
def sagefit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sagefit]:
    """A cloud on which the instances that are hard to get do not come."""
    runner = Sagefit(tmp_path_factory.mktemp("acceptance") / "home", CLOUD="local")
    runner("cloud", "up", "--faults", str(ACCEPTANCE / "faults.yaml"))
    try:
        yield runner
    finally:
        runner("cloud", "down")


def client(sagefit: Sagefit, service: str) -> Any:
    env = sagefit.aws_environment()
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name=env["AWS_REGION"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )


def left(sagefit: Sagefit) -> dict[str, list[Any]]:
    """All that a suite could leave on the cloud; keys that wait for their deletion are gone."""
    keys = [client(sagefit, "kms").describe_key(KeyId=k["KeyId"]) for k in client(sagefit, "kms").list_keys()["Keys"]]
    iam, ec2 = client(sagefit, "iam"), client(sagefit, "ec2")
    found = {
        "buckets": client(sagefit, "s3").list_buckets()["Buckets"],
        "machines": client(sagefit, "stepfunctions").list_state_machines()["stateMachines"],
        "parameters": client(sagefit, "ssm").describe_parameters()["Parameters"],
        "schedules": client(sagefit, "scheduler").list_schedules()["Schedules"],
        "alarms": client(sagefit, "cloudwatch").describe_alarms()["MetricAlarms"],
        "keys": [key for key in keys if key["KeyMetadata"]["KeyState"] == "Enabled" and not _of_aws(key)],
        "roles": [role["RoleName"] for role in iam.list_roles()["Roles"] if "acceptance" in role["RoleName"]],
        "policies": iam.list_policies(Scope="Local")["Policies"],
        "providers": iam.list_open_id_connect_providers()["OpenIDConnectProviderList"],
        "networks": [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]],
    }
    return {kind: each for kind, each in found.items() if each}


def _of_aws(key: dict[str, Any]) -> bool:
    return bool(key["KeyMetadata"]["KeyManager"] == "AWS")


def test_prices_are_told_and_nothing_is_made(sagefit: Sagefit) -> None:
    told = sagefit("acceptance", "--prices").out
    assert all(case.name in told and case.shows in told for case in all_cases())
    assert "training and processing cost at most " in told
    rows = [json.loads(line) for line in sagefit("acceptance", "memory", "--prices", "--json").out.splitlines()]
    assert [row["case"] for row in rows] == ["memory"]
    assert left(sagefit) == {}


def test_it_asks_and_keeps_to_the_limit(sagefit: Sagefit) -> None:
    assert "hint: answer yes, or give --yes" in sagefit("acceptance", "stop", check=REFUSED).err
    refused = sagefit("acceptance", "stop", "--limit", "0.05", "--yes", check=REFUSED).err
    assert "the cases can cost 0.07 USD, and the limit is 0.05; nothing was begun" in refused
    assert left(sagefit) == {}


def test_a_case_runs_is_written_down_and_leaves_nothing(sagefit: Sagefit, tmp_path: Path) -> None:
    done = sagefit("acceptance", "stop", "--yes", "--json", "--out", tmp_path)
    (result,) = map(json.loads, done.out.splitlines())
    assert (result["case"], result["status"], result["why"]) == ("stop", "as expected", ""), done.err
    written = json.loads((tmp_path / "stop.json").read_text(encoding="utf-8"))
    assert (written["case"], written["cloud"], written["region"]) == ("stop", "local", "us-east-1")
    (run,) = written["runs"]
    assert run["status"] == "ABORTED"
    steps = [step["Status"] for step in run["attempts"][0]["job"]["SecondaryStatusTransitions"]]
    assert steps[-2:] == ["Stopping", "Stopped"]
    assert left(sagefit) == {}
    assert "nothing is left" in sagefit("acceptance", "--destroy").err


def test_a_command_acts_as_a_role(sagefit: Sagefit) -> None:
    """What a pipeline would apply is applied as its role."""
    trust = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "sts:AssumeRole"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    iam = client(sagefit, "iam")
    arn = iam.create_role(RoleName="reads-nothing", AssumeRolePolicyDocument=policy)["Role"]["Arn"]
    try:
        told = sagefit("doctor", check=None, SAGEFIT_ROLE_ARN=arn).out
        assert "arn:aws:sts::123456789012:assumed-role/reads-nothing/sagefit, account 123456789012" in told
        assert "assumed-role/reads-nothing/sagefit is not authorized to perform: ssm:GetParameter" in told
    finally:
        iam.delete_role(RoleName="reads-nothing")
    refused = sagefit("doctor", check=2, SAGEFIT_ROLE_ARN="reads-nothing")
    assert "error: SAGEFIT_ROLE_ARN: reads-nothing cannot be taken: " in refused.err
    assert "hint: correct the ARN, or the trust of the role" in refused.err


@pytest.mark.full(witness=WITNESS)
def test_a_platform_of_somebody_else_is_left_alone(sagefit: Sagefit) -> None:
    client(sagefit, "ssm").put_parameter(
        Name="/sagefit/acceptance",
        Type="String",
        Value=json.dumps(
            {
                "schema": 1,
                "name": "acceptance",
                "partition": "aws",
                "region": "us-east-1",
                "account_id": "123456789012",
                "buckets": {"data": "a", "artifacts": "b", "checkpoints": "c"},
            }
        ),
    )
    try:
        refused = sagefit("acceptance", "stop", "--yes", check=2).err
        assert "the account has a platform 'acceptance', which was not made from here; nothing was begun" in refused
    finally:
        client(sagefit, "ssm").delete_parameter(Name="/sagefit/acceptance")
    assert left(sagefit) == {}


@pytest.mark.full(witness=WITNESS)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL], ids=lambda sent: sent.name)
def test_whatever_ends_it_nothing_stays(sagefit: Sagefit, tmp_path: Path, sent: signal.Signals) -> None:
    """Ctrl-C takes all down; after a kill, the next command says what is left, and takes it down."""
    words = [sys.executable, "-m", "sagefit", "acceptance", "stop", "memory", "--yes", "--out", str(tmp_path)]
    environment = dict(sagefit.environment)
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr
        for line in process.stderr:
            if "Training" in line:
                os.kill(process.pid, sent)
                break
        process.communicate(timeout=_SECONDS)
    assert process.returncode
    if sent == signal.SIGKILL:
        refused = sagefit("acceptance", "stop", "--yes", check=2).err
        assert "an earlier suite has left: acceptance, job " in refused
        sagefit("acceptance", "--destroy")
    assert left(sagefit) == {}


@pytest.mark.full(witness=WITNESS)
def test_where_another_cloud_differs_is_told(sagefit: Sagefit, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    document = json.loads((ACCEPTANCE / "seen" / "local" / "stop.json").read_text(encoding="utf-8"))
    document["runs"][0]["error"] = "Sagefit.other"
    (before / "stop.json").write_text(json.dumps(document), encoding="utf-8")
    done = sagefit("acceptance", "stop", "--yes", "--out", tmp_path / "seen", "--against", before)
    assert "error: 'Sagefit.stopped', and 'Sagefit.other' there" in done.out


@pytest.mark.full(witness="tests/terraform/test_backend.py")
def test_the_pipelines_role_reaches_the_states_of_a_teams_backend(sagefit: Sagefit, tmp_path: Path) -> None:
    copy_tree(tree := tmp_path / "tree")
    page = (ROOT / "docs/state.md").read_text(encoding="utf-8")
    (override,) = re.findall(r"^```hcl\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for folder in (tree, tree / "job"):
        (folder / OVERRIDE).write_text(override, encoding="utf-8")
    words = [sys.executable, "-m", "sagefit", "acceptance", "twice", "--yes", "--json", "--out", str(tmp_path / "seen")]
    environment = sagefit.environment | {"PYTHONPATH": str(tree / "python")}
    done = subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    (result,) = map(json.loads, done.stdout.splitlines())
    assert (result["case"], result["status"], result["why"]) == ("twice", "as expected", ""), done.stderr
    s3 = client(sagefit, "s3")
    kept = {each["Key"] for each in s3.list_objects_v2(Bucket=EMBEDDED_BUCKET)["Contents"]}
    assert any(key.startswith("sagefit/") and key.endswith(".tfstate") for key in kept)
    for key in kept:
        s3.delete_object(Bucket=EMBEDDED_BUCKET, Key=key)
    s3.delete_bucket(Bucket=EMBEDDED_BUCKET)
    assert left(sagefit) == {}


@pytest.mark.full(witness=WITNESS)
@pytest.mark.timeout(1500)
def test_all_of_them_run_as_they_were_seen(sagefit: Sagefit, tmp_path: Path) -> None:
    """Also under the pipeline's role, on a platform with a key; each as the files in ``acceptance/seen/local`` say."""
    words = [sys.executable, "-m", "sagefit", "acceptance", "--yes", "--json", "--out", str(tmp_path)]
    done = subprocess.run(
        words, cwd=ROOT, env=sagefit.environment, capture_output=True, text=True, check=False, timeout=1400
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["case"] for result in results] == [case.name for case in all_cases()], done.stderr
    assert {result["case"]: (result["status"], result["why"]) for result in results} == {
        case.name: ("as expected", "") for case in all_cases()
    }
    assert done.returncode != FAILED
    assert left(sagefit) == {}
