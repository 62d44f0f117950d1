"""Instance groups: what the script is told of them, and that torchrun leaves them alone unless it is asked for."""

from __future__ import annotations

import json

import pytest

from .conftest import OF_FILES, Container
from .test_launcher_torchrun import give_torch

pytestmark = OF_FILES

GROUPS = [
    {"instance_group_name": "gpu", "instance_type": "ml.g5.xlarge", "hosts": ["algo-1"]},
    {"instance_group_name": "cpu", "instance_type": "ml.c5.xlarge", "hosts": ["algo-2", "algo-3"]},
]
SCRIPT = """
import json, os
names = ("CURRENT_INSTANCE_GROUP", "CURRENT_INSTANCE_GROUP_HOSTS", "INSTANCE_GROUPS", "INSTANCE_GROUPS_DICT")
print("TOLD" + json.dumps([os.environ["SM_" + name] for name in names] + [os.environ.get("RANK")]))
"""


def told(container: Container) -> list[str]:
    """What the script was told on algo-2."""
    give_torch(container)
    container.config(
        "resourceconfig",
        {
            "current_host": "algo-2",
            "hosts": ["algo-1", "algo-2", "algo-3"],
            "current_group_name": "cpu",
            "instance_groups": GROUPS,
        },
    )
    outcome = container.run(SCRIPT)
    assert outcome.exit_code == 0, outcome.stderr
    line = next(line for line in outcome.stdout.splitlines() if line.startswith('TOLD["'))
    found: list[str] = json.loads(line.removeprefix("TOLD"))
    return found


def test_a_script_knows_its_group_and_the_others(container: Container) -> None:
    group, hosts, names, groups, rank = told(container)
    assert group == "cpu"
    assert json.loads(hosts) == ["algo-2", "algo-3"]
    assert json.loads(names) == ["gpu", "cpu"]
    assert json.loads(groups) == {each["instance_group_name"]: each for each in GROUPS}
    assert rank is None


@pytest.mark.parametrize(("switch", "rank"), [("true", "1"), ("false", None)])
def test_torchrun_can_be_asked_for(container: Container, switch: str, rank: str | None) -> None:
    container.environment["SAGEFIT_TORCHRUN"] = switch
    container.environment["SAGEFIT_MASTER_ADDRESS"] = "127.0.0.1"
    assert told(container)[-1] == rank
