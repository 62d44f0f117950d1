"""The door to Terraform: what a plan is summed up to, and which knob each of Terraform's failures names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import boto3
import pytest

from sagefit.deploy import platform_terraform
from sagefit.errors import FAILED, INVALID, REFUSED, SagefitError
from sagefit.target import Target
from sagefit.terraform import Change, Plan, Terraform

_ROOT = """
terraform {
  backend "local" {}
}

resource "terraform_data" "a" {}
"""


def plan(*changes: tuple[str, str]) -> Plan:
    return Plan(Path("plan"), [Change(action, address) for action, address in changes])


def test_instances_of_one_block_are_counted() -> None:
    summary = plan(
        ("create", 'module.job.aws_s3_object.code["a[0].py"]'),
        ("create", 'module.job.aws_s3_object.code["b\\"].py"]'),
        ("create", 'module.pools["x"].aws_iam_role.this'),
        ("update", "module.alarms.aws_kms_key.topic[0]"),
    ).summary()
    assert summary == [
        "update   module.alarms.aws_kms_key.topic[0]",
        "create   module.job.aws_s3_object.code (2)",
        'create   module.pools["x"].aws_iam_role.this',
    ]


def test_a_plan_that_changes_outputs_only_is_not_empty() -> None:
    assert plan().is_empty
    assert not Plan(Path("plan"), [], outputs_change=True).is_empty


@pytest.mark.parametrize(
    ("summary", "detail", "hint", "exit_code"),
    [
        ("Error acquiring the state lock", "resource temporarily unavailable", "wait", INVALID),
        ("Error acquiring the state lock", "The state file could not be parsed as JSON", "recover dev/jobs/x", FAILED),
        ("creating IAM Role (x)", "EntityAlreadyExists: Role with name x already exists", "recover dev/jobs/x", FAILED),
        ("Saved plan is stale", "the state was changed", "plan again", REFUSED),
        ("No valid credential sources found", "", "log in", INVALID),
        ("Invalid value for variable", "name: too long", "correct the job file", INVALID),
        ("Something else", "", "exit code 1", FAILED),
    ],
)
def test_failures_keep_terraforms_words_and_name_the_knob(
    tmp_path: Path, summary: str, detail: str, hint: str, exit_code: int
) -> None:
    diagnostic = {"severity": "error", "summary": summary, "detail": detail}
    stream = json.dumps({"type": "diagnostic", "diagnostic": diagnostic}) + "\nnot json\n"
    error = Terraform(tmp_path, "dev/jobs/x", Target("aws", tmp_path))._failure(1, stream, "")
    assert summary in error.message
    assert detail in error.message
    assert hint in str(error.hint)
    assert error.exit_code == exit_code


def test_a_failure_without_json_loses_its_box(tmp_path: Path) -> None:
    boxed = "\x1b[31m╷\x1b[0m\n│ Error: Failed to query available provider packages\n│ \n│ no such host\n╵\n"
    error = Terraform(tmp_path, "dev/jobs/x", Target("aws", tmp_path))._failure(1, "", boxed)
    assert error.message == "Error: Failed to query available provider packages\nno such host"
    assert "SAGEFIT_PLUGIN_MIRROR" in str(error.hint)


def test_the_teams_backend_gets_a_key_of_its_own_for_each_state(tmp_path: Path) -> None:
    without = Terraform(tmp_path, "dev/jobs/x", Target("aws", tmp_path / "aws"))
    assert without._backend() == {"path": str(tmp_path / "aws/states/dev/jobs/x.tfstate")}
    (tmp_path / "backend_override.tf").write_text('terraform {\n  backend "s3" {}\n}\n', encoding="utf-8")
    assert without._backend() == {"key": "sagefit/dev/jobs/x.tfstate"}


def test_stacks_of_one_name_in_two_regions_have_two_states(tmp_path: Path) -> None:
    asked: list[str] = []

    def there() -> str:
        asked.append("where?")
        return "_eu-central-1"

    regional = Terraform(tmp_path, "dev/jobs/x", Target("aws", tmp_path / "aws"), suffix=there)
    assert not asked  # a lock needs no state
    assert regional.state_file == tmp_path / "aws/states/dev/jobs/x_eu-central-1.tfstate"
    (tmp_path / "backend_override.tf").write_text('terraform {\n  backend "s3" {}\n}\n', encoding="utf-8")
    assert regional._backend() == {"key": "sagefit/dev/jobs/x_eu-central-1.tfstate"}
    assert asked == ["where?"]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("regional_names = true\n", "wide/platform_eu-west-3.tfstate"),
        ("regional_names = false\n", "wide/platform.tfstate"),
        ("# regional_names = true\n", "wide/platform.tfstate"),
        ("", "wide/platform.tfstate"),
    ],
    ids=["regional", "not", "a remark", "nothing"],
)
def test_the_state_of_a_platform_follows_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, path: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    (tmp_path / "wide.tfvars").write_text(f'name = "wide"\n{written}', encoding="utf-8")
    terraform = platform_terraform("wide", Target("aws", tmp_path), tmp_path)
    assert terraform.state_file == tmp_path / "states" / path


def test_a_platform_whose_variables_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wide.tfvars").write_text('name = "wide"\nregional_names = "oh"\n', encoding="utf-8")
    terraform = platform_terraform("wide", Target("aws", tmp_path), tmp_path)
    with pytest.raises(SagefitError, match="regional_names cannot be read") as caught:
        _ = terraform.state_file
    assert "regional_names = true" in str(caught.value.hint)


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated:DeprecationWarning")  # python-terraform's
def test_the_environment_of_this_process_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    (tmp_path / "main.tf").write_text(_ROOT, encoding="utf-8")
    before = dict(os.environ)
    found = Terraform(tmp_path, "dev/jobs/x", Target("aws", tmp_path / "state")).plan()
    assert [change.address for change in found.changes] == ["terraform_data.a"]
    assert dict(os.environ) == before


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated:DeprecationWarning")  # python-terraform's
def test_plans_and_states_are_for_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    root = tmp_path / "root"
    root.mkdir()
    (root / "main.tf").write_text(_ROOT, encoding="utf-8")
    terraform = Terraform(root, "dev/jobs/x", Target("aws", tmp_path / "home/state/aws"))
    terraform.apply(terraform.plan())
    assert (tmp_path / "home/state/aws/states/dev/jobs/x.tfstate").exists()
    below = [path for path in (tmp_path / "home").rglob("*") if not path.is_symlink()]
    assert not [path for path in below if path.is_dir() and path.stat().st_mode & 0o077]


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated:DeprecationWarning")  # python-terraform's
@pytest.mark.parametrize("kept", [0, 10], ids=["empty", "cut"])
def test_what_a_killed_init_left_half_written_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    root = tmp_path / "root"
    (root / "m").mkdir(parents=True)
    (root / "main.tf").write_text(_ROOT + 'module "m" {\n  source = "./m"\n}\n', encoding="utf-8")
    (root / "m/main.tf").write_text('resource "terraform_data" "b" {}\n', encoding="utf-8")
    terraform = Terraform(root, "dev/jobs/x", Target("aws", tmp_path / "home/state/aws"))
    terraform.plan()
    data = terraform._data
    (data / "sagefit-init").unlink()
    for file in [file for file in data.rglob("*") if file.is_file()]:
        file.write_bytes(file.read_bytes()[:kept])
    assert {change.address for change in terraform.plan().changes} == {"module.m.terraform_data.b", "terraform_data.a"}
    assert all(json.loads(file.read_text()) for file in data.rglob("*.json"))
