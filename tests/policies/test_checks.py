"""Every check of ours on its fixtures, on our own modules, and on faults that are planted in them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.canary import canary, resources
from policies.planned import CHECKS, OWN_MODULES, PLANTED_MODULES, only, plan
from sagefit.checkov import POLICIES, Finding, scan

pytestmark = [
    pytest.mark.xdist_group("policies"),
    pytest.mark.of_files(
        *("*.tf", "job", "jobs", "modules", "policies", "examples/platforms", "tests/policies", "tests/checkout.py"),
        *("python/sagefit/checkov.py", "requirements-checkov.lock"),
    ),
]

Plan = dict[str, Any]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path]:
    """The plan, and the copy of the checkout that it was made in."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "tree").mkdir()
    return plan(folder / "tree", folder / "cloud"), folder / "tree"


@pytest.fixture(scope="module")
def faulty(everything: tuple[Plan, Path]) -> list[Finding]:
    """Findings in the fixtures and in what has planted faults."""
    return scan(only(everything[0], *CHECKS, *PLANTED_MODULES))


@pytest.fixture(scope="module")
def own(everything: tuple[Plan, Path]) -> list[Finding]:
    found, tree = everything
    networks = [tree / "examples" / "platforms" / name for name in ("own-network", "air-gapped")]
    return scan(only(found, *OWN_MODULES), sources=[tree / "job", *networks])


def _table() -> dict[str, dict[str, str]]:
    with (POLICIES / "checks.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("check", CHECKS)
def test_check_fails_what_must_fail_and_passes_the_rest(
    everything: tuple[Plan, Path], faulty: list[Finding], check: str
) -> None:
    said = {finding.address: finding.status for finding in faulty if finding.check == check}
    expected = dict(_expected(everything[0], check))
    assert {address: said.get(address) for address in expected} == expected
    assert {"failed", "passed"} <= set(expected.values())


def _expected(plan: Plan, check: str) -> Iterator[tuple[str, str | None]]:
    """What the names of the fixtures promise: pass, fail, or other, of which the check says nothing."""
    for resource in resources(plan["planned_values"]):
        address = resource["address"]
        promise = re.match(rf"module\.{check}\.(?:module|\w+)\.(pass|fail|other)", address)
        if promise and resource["mode"] == "managed" and not address.endswith("aws_kms_key.other"):
            yield address, {"pass": "passed", "fail": "failed", "other": None}[promise[1]]


def test_every_check_has_fixtures() -> None:
    assert sorted(_table()) == CHECKS


def test_a_check_says_what_is_wrong_and_how_much_it_matters(faulty: list[Finding]) -> None:
    for check, row in _table().items():
        failed = [f for f in faulty if f.check == check and f.status == "failed"]
        assert {(f.name, f.severity) for f in failed} == {(row["name"], row["severity"])}
        assert all(f.message != f.name for f in failed)


@pytest.mark.parametrize("path", sorted((POLICIES / "checks").glob("*.yaml")), ids=lambda path: path.stem)
def test_yaml_says_what_the_table_says(path: Path) -> None:
    metadata = yaml.safe_load(path.read_text(encoding="utf-8"))["metadata"]
    row = _table()[metadata["id"]]
    assert [metadata[key] for key in ("name", "severity", "category")] == [
        row[key] for key in ("name", "severity", "category")
    ]
    assert metadata["guideline"] == f"docs/policies.md#{metadata['id'].lower()}"


def test_our_plans_have_no_failed_check(own: list[Finding]) -> None:
    assert [finding for finding in own if finding.status == "failed"] == []


def test_every_check_has_something_of_ours_to_judge(own: list[Finding]) -> None:
    """But head-room, which is a tag of attempts with a prediction."""
    judged = {finding.check for finding in own if finding.status == "passed"}
    assert set(_table()) - judged <= {"CKV_SAGEFIT_3"}


def test_what_is_skipped_in_our_files_is_skipped_in_their_plans(own: list[Finding]) -> None:
    skipped = [finding for finding in own if finding.status == "skipped"]
    assert {"CKV_AWS_284", "CKV_AWS_144"} <= {finding.check for finding in skipped}
    assert all(finding.reason for finding in skipped)


@pytest.mark.parametrize(
    ("check", "address"),
    [
        ("CKV_SAGEFIT_2", "planted_job.aws_sfn_state_machine.this"),
        ("CKV_SAGEFIT_4", "planted_job.aws_sfn_state_machine.this"),
        ("CKV_SAGEFIT_6", "planted_job.aws_sfn_state_machine.this"),
        ("CKV_SAGEFIT_6", "planted_platform.aws_ssm_parameter.document"),
        ("CKV_SAGEFIT_7", "planted_job.aws_sfn_state_machine.this"),
        ("CKV_SAGEFIT_8", "planted_job.aws_sfn_state_machine.this"),
        ("CKV_SAGEFIT_9", "planted_job.aws_iam_role_policy.state_machine"),
        ("CKV_SAGEFIT_10", "planted_job.aws_iam_role_policy.state_machine"),
        ("CKV_SAGEFIT_11", "planted_job.aws_iam_role_policy.state_machine"),
        ("CKV2_SAGEFIT_1", "planted_platform.module.alarms.aws_sns_topic.this"),
        ("CKV2_SAGEFIT_3", 'planted_platform.module.alarms.aws_cloudwatch_metric_alarm.this["gpu-memory"]'),
        ("CKV2_SAGEFIT_4", 'planted_platform.module.buckets.aws_s3_bucket.this["data"]'),
        ("CKV2_SAGEFIT_5", "planted_job.aws_cloudwatch_log_group.runs"),
    ],
)
def test_a_planted_fault_is_found(faulty: list[Finding], check: str, address: str) -> None:
    assert (check, f"module.{address}", "failed") in {(f.check, f.address, f.status) for f in faulty}


def test_canary_is_made_of_the_fixtures(everything: tuple[Plan, Path]) -> None:
    """Each of its resources fails one check, which every scan asks first; ``policies/canary.py`` writes it anew."""
    written = json.loads((POLICIES / "canary.json").read_text(encoding="utf-8"))
    made = canary(everything[0])
    for one, other in zip(resources(written["planned_values"]), resources(made["planned_values"]), strict=True):
        assert one["address"] == other["address"]
        assert one["values"].get("definition") == other["values"].get("definition")
