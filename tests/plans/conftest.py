"""One plan of all cases, in the one process that runs this folder's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plans.cases import all_cases
from plans.normalise import Plan
from plans.terraform import embedded_cloud, plan_all


@pytest.fixture(scope="package")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of a Terraform that talks to an embedded cloud."""
    with embedded_cloud(tmp_path_factory.mktemp("plans-cloud")) as found:
        yield found


@pytest.fixture(scope="package")
def plans(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plan]:
    """Every case as it is planned, by its name."""
    return plan_all(all_cases(), tmp_path_factory.mktemp("plans"), environment)
