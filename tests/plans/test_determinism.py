"""Planned again, and in another folder, everything is the same to the byte. SNAPSHOT_REPEAT=20 plans twenty times."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from plans.cases import GOLDEN, Case
from plans.normalise import Plan
from plans.terraform import plan_all

pytestmark = pytest.mark.xdist_group("plans")


@pytest.mark.full(witness="tests/plans/test_plans.py")
def test_golden_stacks_are_always_planned_alike(
    plans: dict[str, Plan], environment: dict[str, str], tmp_path: Path
) -> None:
    golden = [Case(name) for name in GOLDEN.values()]
    first = {case.name: _bytes(plans[case.name]) for case in golden}
    for index in range(1, int(os.environ.get("SNAPSHOT_REPEAT", "3"))):
        again = plan_all(golden, tmp_path / str(index), environment)
        assert {name: _bytes(plan) for name, plan in again.items()} == first


def _bytes(plan: Plan) -> bytes:
    return json.dumps(plan).encode()
