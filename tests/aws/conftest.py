"""A cloud for the ledger, in which nobody trains."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aws.bases import prepare
from cloud.aws_user import Aws
from sagefit.cloud import control


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """A cloud with what the requests of the ledger take for granted."""
    folder = tmp_path_factory.mktemp("ledger")
    faults = folder / "faults.yaml"
    faults.write_text("- outcome: { status: Completed }\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAGEFIT_HOME", str(folder))
        control.up(faults=faults)
        user = Aws(control.environment())
    try:
        prepare(user)
        yield user
    finally:
        user.close()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SAGEFIT_HOME", str(folder))
            control.down()
