"""Every module, root, example and job is planned, and the plans hold what their inventories and snapshots say."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension
from syrupy.terminal import disable_color

from plans.cases import FOLDER, GOLDEN, all_cases, targets
from plans.inventory import check, refresh, regenerate
from plans.normalise import Plan

pytestmark = pytest.mark.xdist_group("plans")

CASES = {case.name: case for case in all_cases()}


def test_everything_has_a_case() -> None:
    assert targets() - {case.target for case in CASES.values()} - set(CASES) == set()


def test_values_without_a_case_are_a_mistake() -> None:
    named = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.tfvars")}
    assert named - set(CASES) == set()


@pytest.mark.parametrize("name", [name for name in CASES if name not in GOLDEN.values()])
def test_inventory(name: str, plans: dict[str, Plan], request: pytest.FixtureRequest) -> None:
    path = CASES[name].inventory
    if request.config.getoption("update_snapshots"):
        refresh(path, plans[name])
    check(path, plans[name], name)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str, plans: dict[str, Plan], snapshot: SnapshotAssertion) -> None:
    planned: Any = plans[GOLDEN[name]]
    kept = snapshot.use_extension(JSONSnapshotExtension)
    is_same = planned == kept
    with disable_color():  # the whole difference, of which pytest would show the first lines
        assert is_same, "\n".join(["", *kept.get_assert_diff(), "", regenerate(name)])
