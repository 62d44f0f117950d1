"""What an apply minds of the runs that are in progress."""

from __future__ import annotations

import pytest

from sagefit.deploy import takes_from_runs

CODE = 'module.job.aws_s3_object.code["train.py"]'
ROLE = "module.job.aws_iam_role.execution[0]"
MACHINE = "module.job.aws_sfn_state_machine.this"


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ([(CODE, ["replace"])], True),
        ([(CODE, ["create", "delete"])], True),
        ([(CODE, ["create"]), (MACHINE, ["update"])], False),
        ([(ROLE, ["create"]), (MACHINE, ["create"])], False),  # the first apply
        ([(ROLE, ["create"]), (MACHINE, ["update"])], True),  # the shared role before
        ([(ROLE, ["delete"]), (MACHINE, ["update"])], True),
        ([(ROLE, ["update"]), (MACHINE, ["update"])], False),
        ([(MACHINE, ["update"])], False),
    ],
)
def test_a_plan_that_takes_code_or_role_from_runs(changes: list[tuple[str, list[str]]], taken: bool) -> None:
    assert takes_from_runs(changes) == taken
