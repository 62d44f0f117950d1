"""What the commands created they take away again. The last file of the folder: it ends the platform."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from e2e.conftest import World
from sagefit.errors import REFUSED

pytestmark = pytest.mark.xdist_group("e2e")


@pytest.mark.full(witness="tests/e2e/test_auto.py::test_a_run_moves_to_the_attempt_that_was_made_for_its_failure")
def test_destroy_leaves_nothing_behind(world: World, scratch: Path) -> None:
    assert scratch in world.applied
    jobs: list[str | Path] = ["quickstart", *world.applied]
    early = world.sagefit("platform", "destroy", "--yes", check=REFUSED)
    assert "job quickstart is applied on it" in early.err
    for job in jobs:
        world.sagefit("destroy", job, "--yes")
    refused = world.sagefit("platform", "destroy", "--yes", check=REFUSED)
    assert "is applied on it" not in refused.err
    assert re.search(r"bucket sagefit-dev-\S+ holds [\d,]+ versions? of objects", refused.err)
    assert "buckets = { force_destroy = true }" in refused.err
    s3 = world.client("s3")
    assert world.client("ssm").get_parameter(Name="/sagefit/dev")  # nothing is gone
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
            if not g["logGroupName"].startswith("/aws/sagemaker/")  # SageMaker's own, with the users' logs
        ],
    }
    assert {kind: found for kind, found in left.items() if found} == {}
