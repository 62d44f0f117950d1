"""A scan never says that all is well of what it has not judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from checkout import copy_tree
from sagefit.checkov import POLICIES, ScanError, scan, severities
from sagefit.errors import FAILED
from sagefit.paths import ROOT

pytestmark = pytest.mark.of_files(
    *(".checkov.yaml", "policies", "python/sagefit/checkov.py", "python/sagefit/environments.py"),
    *("requirements-checkov.lock", "tests/checkout.py", "tests/policies/test_scan.py"),
)

CHANGE = {"address": "aws_sns_topic.a", "mode": "managed", "type": "aws_sns_topic", "name": "a"}


def _plan(*topics: dict[str, Any], actions: str = "create") -> dict[str, Any]:
    named = [CHANGE | {"address": f"aws_sns_topic.a{n}", "name": f"a{n}"} for n, _ in enumerate(topics)]
    change: dict[str, Any] = {"actions": [actions], "before": None, "after": {}}
    return {
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "planned_values": {
            "root_module": {
                "resources": [resource | {"values": values} for resource, values in zip(named, topics, strict=True)]
            }
        },
        "resource_changes": [resource | {"change": change} for resource in named],
    }


TOPIC = {"name": "sagefit-dev-alarms", "tags": {}}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "is no plan"),
        ("{}", "no planned_values"),
        (json.dumps(_plan()), "no resources"),
        (json.dumps(_plan(TOPIC) | {"errored": True}), "not complete"),
        (None, "No such file"),
    ],
)
def test_broken_input_is_an_error(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ScanError, match=says) as caught:
        scan(path)
    assert caught.value.exit_code == FAILED
    assert caught.value.hint


def test_a_plan_that_destroys_everything_has_nothing_to_judge() -> None:
    plan = _plan() | {"resource_changes": [CHANGE | {"change": {"actions": ["delete"]}}]}
    assert scan(plan) == []


def _break_python(checks: Path) -> None:
    (checks / "roles.py").write_text("import nothing_of_that_name\n", encoding="utf-8")


def _break_yaml(checks: Path) -> None:
    (checks / "alarms_exist.yaml").write_text("metadata: {id: CKV2_SAGEFIT_1}\n", encoding="utf-8")


def _break_rule(checks: Path) -> None:
    text = (checks / "training_jobs.py").read_text(encoding="utf-8")
    (checks / "training_jobs.py").write_text(text.replace("is_regulated(conf)", "False"), encoding="utf-8")


def test_checks_that_do_not_load_are_an_error(tmp_path: Path) -> None:
    """A file that cannot be imported, a YAML check without a definition, and rules that see nothing any more."""
    policies = _copied(tmp_path)
    for spoil in (_break_python, _break_yaml, _break_rule):
        spoil(policies / "checks")
    with pytest.raises(ScanError) as caught:
        scan(_plan(TOPIC), policies=policies)
    assert caught.value.message.rpartition(": ")[2].split() == [
        *("CKV2_SAGEFIT_1", "CKV_SAGEFIT_10", "CKV_SAGEFIT_11"),
        *("CKV_SAGEFIT_6", "CKV_SAGEFIT_7", "CKV_SAGEFIT_8", "CKV_SAGEFIT_9"),
    ]


def test_checks_without_a_package_are_an_error(tmp_path: Path) -> None:
    policies = _copied(tmp_path)
    (policies / "checks" / "__init__.py").unlink()
    with pytest.raises(ScanError, match=r"has no __init__\.py"):
        scan(_plan(TOPIC), policies=policies)


def test_policies_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScanError, match="No such file"):
        scan(_plan(TOPIC), policies=tmp_path)


def _copied(folder: Path) -> Path:
    """Our policies where they can be spoiled; they look for the table of instances beside them."""
    shutil.copytree(POLICIES, folder / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "modules" / "training-job").mkdir(parents=True)
    shutil.copy(ROOT / "modules" / "training-job" / "instances.csv", folder / "modules" / "training-job")
    return folder / "policies"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo Traceback >&2; exit 2", "judged nothing: Traceback"),
        ('echo \'{"passed": 0, "failed": 0}\'', "judged nothing"),
        ("echo '[]'", "judged nothing"),
        ('echo \'{"results": {"parsing_errors": ["/plan.json"]}}\'', "cannot read /plan.json"),
        ('echo \'{"results": {}, "summary": {"resource_count": 1}}\'', "saw 1 of"),
    ],
)
def test_an_answer_that_is_no_report_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    """A stand-in for checkov, since the real one does not break like this on demand."""
    monkeypatch.setenv("SAGEFIT_CHECKOV", str(_stand_in(tmp_path, script)))
    with pytest.raises(ScanError, match=says):
        scan(_plan(TOPIC))


def _stand_in(folder: Path, script: str) -> Path:
    program = folder / "checkov"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_what_checkov_keeps_is_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parser is a pickle that it takes from the temporary directory."""
    monkeypatch.setenv("SAGEFIT_CHECKOV", str(_stand_in(tmp_path, 'touch "$TMPDIR/parser"')))
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    with pytest.raises(ScanError):
        scan(_plan(TOPIC))
    (kept,) = (tmp_path / "home").rglob("parser")
    assert kept.parent.stat().st_mode & 0o077 == 0


def test_a_checkov_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEFIT_CHECKOV", str(tmp_path / "none"))
    with pytest.raises(ScanError, match="cannot be run"):
        scan(_plan(TOPIC))


def test_skips_are_read_from_the_sources_and_need_a_reason(tmp_path: Path) -> None:
    """A finding of a plan names the file, too, once the sources are given."""
    (tmp_path / "main.tf").write_text(
        """
resource "aws_sns_topic" "a0" {
  #checkov:skip=CKV2_SAGEFIT_1:Alarms are made elsewhere
  #checkov:skip=CKV_AWS_26
  name = "sagefit-dev-alarms"
}
""",
        encoding="utf-8",
    )
    found = {finding.check: finding for finding in scan(_plan(TOPIC), sources=[tmp_path])}
    ours, theirs = found["CKV2_SAGEFIT_1"], found["CKV_AWS_26"]
    assert (ours.status, ours.reason, ours.severity) == ("skipped", "Alarms are made elsewhere", "HIGH")
    assert (theirs.status, theirs.reason, theirs.severity) == ("failed", None, "MEDIUM")
    assert theirs.message.startswith("skipped without a reason")
    assert (theirs.file, theirs.line) == ("main.tf", 2)


@pytest.mark.of_files(
    *("*.tf", "job/*.tf", "modules/**/*.tf", "examples/**/*.tf", "acceptance/**/*.tf"),
    *(".checkov.yaml", "policies/*.csv", "python/sagefit/checkov.py", "requirements-checkov.lock"),
)
def test_our_files_have_no_failed_check(tmp_path: Path) -> None:
    """The whole checkout, as a team scans it: .checkov.yaml leaves out what is wrong on purpose."""
    copy_tree(tmp_path)
    found = scan(tmp_path)
    assert [finding for finding in found if finding.status == "failed"] == []
    skips = [finding for finding in found if finding.status == "skipped"]
    assert skips
    assert all(len(finding.reason or "") >= 15 for finding in skips)
    declared = {finding.file for finding in found if finding.file}
    assert {"main.tf", "modules/training-job/state-machine.tf", "modules/s3-buckets/main.tf"} <= declared


@pytest.mark.parametrize("block", ['resource "aws_sns_topic" "b"', "locals"])
def test_a_file_that_checkov_cannot_read_is_an_error(tmp_path: Path, block: str) -> None:
    (tmp_path / "main.tf").write_text('resource "aws_sns_topic" "a" {\n  name = "a"\n}\n')
    (tmp_path / "odd.tf").write_text(f"{block} {{\n  name = try(\n    !a\n    && b\n  )\n}}\n")
    with pytest.raises(ScanError, match=r"cannot read .*odd\.tf"):
        scan(tmp_path)


def test_every_severity_is_one_that_a_reader_knows() -> None:
    assert set(severities().values()) == {"CRITICAL", "HIGH", "MEDIUM", "LOW"}
