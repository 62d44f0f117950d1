"""What a platform team does with a change: format, validate, plan, and the policies, by the commands of the page."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkout import copy_tree
from consumer.repository import create
from policies.offline import cloud, terraform
from sagefit.checkov import environment
from sagefit.paths import ROOT

pytestmark = pytest.mark.xdist_group("consumer")

_PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
_SCRIPT = re.findall(r"```shell\n(.*?)```", _PAGE, flags=re.DOTALL)
_OF_FILES = pytest.mark.of_files(
    *("*.tf", "modules", "policies", "docs/policies.md", "tests/consumer"),
    *("python/sagefit/checkov.py", "requirements-checkov.lock"),
)


@dataclass(frozen=True)
class Team:
    """The team's repository, and what Terraform needs to plan without an account."""

    root: Path
    environment: dict[str, str]

    def plan(self, settings: str) -> None:
        """Plan one of the tfvars."""
        arguments = ["-input=false", "-out=plan.tfplan", f"-var-file={settings}.tfvars"]
        terraform(self.root, self.environment, "plan", *arguments)

    def judge(self) -> subprocess.CompletedProcess[str]:
        """Run what the page says."""
        (script,) = _SCRIPT
        (self.root / "policies.sh").write_text(script, encoding="utf-8")
        (temporary := self.root.parent / "tmp").mkdir(exist_ok=True)  # of checkov's parser
        path = f"{environment().parent}:{self.environment['PATH']}"
        settings = {
            "SAGEFIT": "../sagefit",
            "SAGEFIT_ALLOWED_INSTANCE_TYPES": "ml.g5.* ml.m5.*",
            "PATH": path,
            "TMPDIR": str(temporary),
        }
        return subprocess.run(
            ["sh", "-e", "policies.sh"],
            cwd=self.root,
            env={**os.environ, **self.environment, **settings},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("consumer")
    (folder / "sagefit").mkdir()
    copy_tree(folder / "sagefit")
    root = create(folder)
    with cloud(folder / "cloud") as environment:
        terraform(root, environment, "init")
        yield Team(root, environment)


def test_the_repository_is_formatted_and_valid(team: Team) -> None:
    terraform(team.root, team.environment, "fmt", "-check", "-recursive")
    found = json.loads(terraform(team.root, team.environment, "validate", "-json"))
    assert found["valid"]
    # The root of Sagefit is a module here, and has a backend for those who apply it as it is.
    assert {diagnostic["summary"] for diagnostic in found["diagnostics"]} <= {"Backend configuration ignored"}


@_OF_FILES
def test_good_settings_pass(team: Team) -> None:
    team.plan("good")
    done = team.judge()
    assert done.returncode == 0, done.stdout + done.stderr
    passed, failed, skipped = (int(n) for n in re.findall(r"(?:Passed|Failed|Skipped) checks: (\d+)", done.stdout))
    assert passed > 100
    assert not failed
    assert skipped


@_OF_FILES
def test_bad_settings_fail(team: Team) -> None:
    team.plan("bad")
    done = team.judge()
    assert done.returncode == 1
    failed = re.findall(r"^Check: (CKV2?_SAGEFIT_\d+):.*\n\tFAILED", done.stdout, flags=re.MULTILINE)
    expected = {"CKV2_SAGEFIT_1", "CKV2_SAGEFIT_4", "CKV_SAGEFIT_5", "CKV_SAGEFIT_6", "CKV_SAGEFIT_7"}
    assert set(failed) == expected, done.stdout


def test_policies_that_do_not_load_are_noticed(team: Team) -> None:
    """checkov alone would end with 0, whatever the plan."""
    package = team.root.parent / "sagefit" / "policies" / "checks" / "__init__.py"
    kept = package.read_bytes()
    package.unlink()
    try:
        done = team.judge()
    finally:
        package.write_bytes(kept)
    assert done.returncode == 2
    assert done.stderr.endswith("was not loaded\n")
