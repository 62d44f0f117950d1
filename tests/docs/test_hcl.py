"""Terraform on the pages: it is formatted, and the real provider plans it against an embedded cloud."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest

from checkout import copy_tree
from cli_runner import Sagefit
from docs.pages import Block, all_blocks
from sagefit.paths import ROOT
from sagefit.toolchain import terraform_binary

# What modules/training-job reads of a platform; a page shows how a job looks its platform up.
_PLATFORM = {
    "schema": 1,
    "name": "dev",
    "partition": "aws",
    "region": "us-east-1",
    "account_id": "123456789012",
    "role_arn": "arn:aws:iam::123456789012:role/sagefit-dev-execution",
    "buckets": {key: f"sagefit-dev-{key}" for key in ("data", "artifacts", "checkpoints")},
}


def name(block: Block) -> str:
    """A module's name for a block."""
    return "-".join(block.page.relative_to(ROOT).with_suffix("").parts) + f"-{block.number}"


def write_blocks(root: Path) -> list[str]:
    """Every block as a module of one configuration, where ``./modules`` is the repository's; their names."""
    calls = {}
    for block in all_blocks("hcl"):
        folder = root / name(block)
        folder.mkdir(parents=True)
        (folder / "main.tf").write_text(block.text, encoding="utf-8")
        (folder / "modules").symlink_to(ROOT / "modules")
        (folder / "code").mkdir()
        (folder / "code" / "train.py").write_text("print('trained')\n", encoding="utf-8")
        calls[name(block)] = f'module "{name(block)}" {{\n  source = "./{name(block)}"\n}}\n'
    (root / "main.tf").write_text("\n".join(calls.values()), encoding="utf-8")
    return list(calls)


def made_by_jobs() -> dict[str, str]:
    """What docs/platform.md says that a job makes itself: when, by the type of a resource."""
    page = (ROOT / "docs" / "platform.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(aws_\w+)` \| .* \| (.*) \|$", page, re.MULTILINE))


def check_a_platform_of_ones_own(changes: list[dict[str, Any]]) -> None:
    """A job with a document that its team wrote has the team's role, buckets, key and network, and makes the rest."""
    (page,) = (block for block in all_blocks("hcl") if block.page.name == "platform.md" and not block.way)
    job = [each for each in changes if each["address"].startswith(f"module.{name(page)}.module.job.")]
    told = made_by_jobs()
    made = {each["type"] for each in job if each["mode"] == "managed"}
    assert made <= set(told)
    assert made >= {kind for kind, when in told.items() if when == "always"}
    planned = {each["type"]: each["change"]["after"] for each in job}
    assert planned["aws_s3_object"]["bucket"] == "company-data"
    states = json.loads(planned["aws_sfn_state_machine"]["definition"])["States"]
    request = states["first: submit"]["Parameters"]
    assert request["RoleArn"] == "arn:aws:iam::123456789012:role/company/training"
    assert request["OutputDataConfig"]["S3OutputPath"].startswith("s3://company-models/")
    assert request["OutputDataConfig"]["KmsKeyId"].endswith(":key/11111111-2222-3333-4444-555555555555")
    assert request["VpcConfig"] == {"SecurityGroupIds": ["sg-0a1b2c3d"], "Subnets": ["subnet-0a1b2c3d"]}


def test_the_page_lists_all_that_a_job_makes_itself() -> None:
    files = (ROOT / "modules" / "training-job").glob("*.tf")
    made = {kind for file in files for kind in re.findall(r'(?m)^resource "(\w+)"', file.read_text(encoding="utf-8"))}
    assert sorted(made_by_jobs()) == sorted(made)


def terraform(root: Path, environment: dict[str, str], *arguments: str) -> str:
    """Run Terraform; its output."""
    done = subprocess.run(
        [terraform_binary(root), f"-chdir={root}", *arguments],
        env={k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TF_"))} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.of_files(
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "examples", "job", "modules", "policies"),
    *("main.tf", "outputs.tf", "variables.tf", "versions.tf", "python/sagefit_cloud", "tests/docs"),
)
def test_blocks_plan(tmp_path: Path) -> None:
    names = write_blocks(tmp_path / "blocks")
    sagefit = Sagefit(tmp_path / "home", CLOUD="local")
    sagefit("cloud", "up")
    try:
        environment = sagefit.aws_environment()
        with pytest.MonkeyPatch.context() as patch:
            for key, value in environment.items():
                patch.setenv(key, value)
            document = json.dumps(_PLATFORM)
            ssm: Any = boto3.Session().client("ssm")  # the default session may have the key of another cloud
            ssm.put_parameter(Name="/sagefit/dev", Value=document, Type="String", Tier="Advanced")
        terraform(tmp_path / "blocks", environment, "init", "-input=false", "-no-color")
        terraform(tmp_path / "blocks", environment, "plan", "-input=false", "-no-color", "-out=plan")
        plan = json.loads(terraform(tmp_path / "blocks", environment, "show", "-json", "plan"))
        made = {change["address"].split(".")[1] for change in plan["resource_changes"] if change["mode"] == "managed"}
        empty = {"modules-warm-pool-README-1"}  # a pool is no object of the API
        assert made == set(names) - empty
        check_a_platform_of_ones_own(plan["resource_changes"])
        copy_tree(tmp_path / "tree")
        for block in all_blocks("hcl", way="as tfvars"):
            variables = tmp_path / f"{name(block)}.tfvars"
            variables.write_text(block.text, encoding="utf-8")
            terraform(tmp_path / "tree", environment, "init", "-input=false", "-no-color")
            terraform(tmp_path / "tree", environment, "plan", "-input=false", f"-var-file={variables}")
    finally:
        sagefit("cloud", "down")


@pytest.mark.parametrize("block", all_blocks("hcl", way=None), ids=str)
def test_blocks_are_formatted(block: Block) -> None:
    done = subprocess.run(
        [terraform_binary(ROOT / ".sagefit"), "fmt", "-diff", "-"],
        input=block.text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("", block.text), done.stdout
