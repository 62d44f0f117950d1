"""The modules as they are, planned over the states of earlier versions: nothing that holds data goes or is replaced.

Nothing is refreshed, so no account is asked; what the provider asks all the same, the embedded cloud answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkout import copy_tree
from plans.terraform import PlanJson, embedded_cloud, plan, publish
from upgrade.kept import STATES, VERSIONS, losses

pytestmark = pytest.mark.xdist_group("upgrade")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of a Terraform that talks to an embedded cloud."""
    with embedded_cloud(tmp_path_factory.mktemp("upgrade-cloud")) as found:
        yield found


def plan_over(version: str, name: str, root: Path, environment: dict[str, str]) -> PlanJson:
    """Plan the platform or the job of a version over its state, with the modules of a copy of the checkout."""
    (root / "terraform.tfstate").write_bytes((STATES / version / f"{name}.json").read_bytes())
    return plan(root, environment, f"-var-file={STATES / version / name}.tfvars")


def kept_resources(version: str, name: str) -> set[str]:
    """Types of the resources in a state."""
    state = json.loads((STATES / version / f"{name}.json").read_text(encoding="utf-8"))
    return {resource["type"] for resource in state["resources"] if resource["mode"] == "managed"}


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_that_holds_data_is_lost(version: str, environment: dict[str, str], tmp_path: Path) -> None:
    copy_tree(tmp_path)
    platform = plan_over(version, "platform", tmp_path, environment)
    assert losses(platform) == []
    publish(platform["output_changes"]["document"]["after"], environment)
    assert losses(plan_over(version, "job", tmp_path / "job", environment)) == []


def test_a_renamed_bucket_is_found(environment: dict[str, str], tmp_path: Path) -> None:
    copy_tree(tmp_path)
    module = tmp_path / "modules/s3-buckets/main.tf"
    text = module.read_text(encoding="utf-8")
    renamed = text.replace("${var.context.region}-${key}", "${var.context.region}-v2-${key}")
    assert renamed != text
    module.write_text(renamed, encoding="utf-8")

    found = losses(plan_over(VERSIONS[-1], "platform", tmp_path, environment))
    assert 'delete/create module.buckets.aws_s3_bucket.this["data"] (forced by bucket)' in found


def test_states_hold_what_must_not_be_lost() -> None:
    for version in VERSIONS:
        assert kept_resources(version, "platform") >= {
            "aws_ecr_repository",
            "aws_iam_role",
            "aws_kms_key",
            "aws_s3_bucket",
            "aws_sns_topic",
            "aws_ssm_parameter",
        }
        assert kept_resources(version, "job") >= {"aws_cloudwatch_log_group", "aws_iam_role", "aws_sfn_state_machine"}


@pytest.mark.parametrize(
    ("kind", "actions", "found"),
    [
        ("aws_s3_bucket", ["delete"], ["delete a.b (forced by name, rule.0)"]),
        ("aws_kms_key", ["create", "delete"], ["create/delete a.b (forced by name, rule.0)"]),
        ("aws_new_thing", ["delete", "create"], ["delete/create a.b (forced by name, rule.0)"]),
        ("aws_s3_bucket", ["update"], []),
        ("aws_s3_object", ["create", "delete"], []),
    ],
)
def test_losses_are_told_from_changes(kind: str, actions: list[str], found: list[str]) -> None:
    change = {"actions": actions, "replace_paths": [["rule", 0], ["name"]]}
    assert losses({"resource_changes": [{"type": kind, "address": "a.b", "change": change}]}) == found
