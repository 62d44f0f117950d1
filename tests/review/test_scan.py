"""The policies over a plan by the real checkov: what a change brings and ends."""

from __future__ import annotations

from typing import Any

import pytest

from review.plans import change, plan
from sagefit.reviewing import Document
from sagefit.reviewing.scan import policy_diff


def _volume(name: str, before: bool | None, after: bool | None) -> dict[str, Any]:
    old, new = (
        None if encrypted is None else {"availability_zone": "us-east-1a", "size": 10, "encrypted": encrypted}
        for encrypted in (before, after)
    )
    return change(f"aws_ebs_volume.{name}", old, new, provider_name="registry.terraform.io/hashicorp/aws")


@pytest.mark.xdist_group("review-scan")
@pytest.mark.of_files(
    *("policies", "python/sagefit/checkov.py", "python/sagefit/environments.py", "python/sagefit/reviewing"),
    *("requirements-checkov.lock", "tests/review/plans.py", "tests/review/test_scan.py"),
)
def test_failures_are_new_fixed_or_old() -> None:
    entries = [_volume("worse", True, False), _volume("better", False, True), _volume("gone", False, None)]
    kept = _volume("same", False, False)
    kept["change"]["before"]["size"] = 5
    diff = policy_diff(Document("plan.json", plan([*entries, kept])))
    encrypted = {
        kind: [f.address for f in getattr(diff, kind) if f.check == "CKV_AWS_3"] for kind in ("new", "fixed", "old")
    }
    assert encrypted == {
        "new": ["aws_ebs_volume.worse"],
        "fixed": ["aws_ebs_volume.better", "aws_ebs_volume.gone"],
        "old": ["aws_ebs_volume.same"],
    }
