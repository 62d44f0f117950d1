"""One plan for all proofs, whichever process they run in, and a cloud for each file that wants one."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from cloud.aws_user import Aws
from proofs.failing_cloud import prepare, write_faults
from proofs.planned import Planned, plan
from sagefit.cloud import control


@pytest.fixture(scope="session")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Examples, jobs and platforms as Terraform plans them; the first process to come makes the plan."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of the whole session
    stored = folder / "plan.json"
    with (folder / "plan.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stored.exists():
            made = plan(tmp_path_factory.mktemp("proofs") / "tree")
            stored.write_text(json.dumps(asdict(made)), encoding="utf-8")
    return Planned(**json.loads(stored.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory, planned: Planned) -> Iterator[Aws]:
    """A cloud with what was planned, in which every training job fails."""
    folder = tmp_path_factory.mktemp("proofs-cloud")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAGEFIT_HOME", str(folder))
        control.up(faults=write_faults(folder / "faults.yaml"))
        user = Aws(control.environment())
        try:
            prepare(user, planned)
            yield user
        finally:
            user.close()
            control.down()
