"""``sagefit recover``: what it takes into the state, and what it leaves alone."""

from __future__ import annotations

import json
import re

import pytest

from interruptions.gate import Held
from interruptions.ground import S3, WHOLE, Ground, is_create
from sagefit.terraform.backend import EMBEDDED_BUCKET

pytestmark = pytest.mark.xdist_group("interruptions")


def test_a_lock_of_somebody_else_is_left_alone(ground: Ground) -> None:
    stack = ground.stack("guarded", S3)
    stack.sagefit("platform", "plan", stack.name)
    info = {"ID": "1-2", "Operation": "OperationTypeApply", "Who": "ci@runner", "Created": "2026-01-02T03:04:05.6Z"}
    s3 = ground.client("s3")
    s3.put_object(Bucket=EMBEDDED_BUCKET, Key=f"sagefit/{stack.key}.tfstate.tflock", Body=json.dumps(info).encode())
    said = stack.sagefit("platform", "plan", stack.name, check=2).err
    assert f"recover {stack.key}" in said
    said = stack.sagefit("recover", stack.key, check=2).err
    assert "it is held by ci@runner" in said
    assert f"recover {stack.key} --lock 1-2" in said
    assert stack.locks()
    said = stack.sagefit("recover", stack.key, "--lock", "1-2").err
    assert "misses nothing that exists" in said
    assert not stack.locks()


def test_what_is_not_of_the_stack_is_left_alone(ground: Ground) -> None:
    """The role of this name has no tags of this platform. The log group has none to tell by, so it is asked about."""
    stack = ground.stack("foreign", S3)
    name = f"stack-{stack.name}"
    ground.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    ground.client("logs").create_log_group(logGroupName=f"/{name}/a")
    said = stack.sagefit("recover", stack.key, "--yes", check=4).err
    assert re.search(r'import +aws_cloudwatch_log_group\.this\["a"\]', said)
    assert "aws_iam_role.this exists and is not of this stack" in said
    assert "sagefit:platform=foreign" in said
    assert "7 to add" in stack.sagefit("platform", "plan", stack.name).out


def test_a_state_that_could_not_be_written_is_written_by_a_recovery(ground: Ground) -> None:
    """Terraform leaves it in the root, where the next stack would meet it."""
    stack = ground.stack("unsaved", S3)
    s3 = ground.client("s3")
    with (
        ground.gate.holding(Held(is_create)) as held,
        stack.started("platform", "apply", stack.name, "--yes") as applying,
    ):
        held.wait()
        for each in s3.list_objects_v2(Bucket=EMBEDDED_BUCKET).get("Contents", []):
            s3.delete_object(Bucket=EMBEDDED_BUCKET, Key=each["Key"])
        s3.delete_bucket(Bucket=EMBEDDED_BUCKET)
        held.release()
        said = applying.communicate()[0]
    assert applying.returncode == 1, said
    assert f"recover {stack.key}" in said
    assert not list(ground.trees[S3].glob("errored.tfstate"))
    assert "the state that an apply could not write is written" in stack.sagefit("recover", stack.key, "--yes").err
    assert "to create" not in stack.apply()
    assert stack.made() == WHOLE
