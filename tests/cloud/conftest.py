"""A real embedded cloud for each test process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloud.aws_user import GRACE_SECONDS, Aws
from sagefit.cloud import control


@pytest.fixture(scope="session")
def cloud_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def _settle(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("SAGEFIT_HOME", str(home))
    patch.setenv("SAGEFIT_STOP_GRACE_SECONDS", str(GRACE_SECONDS))


@pytest.fixture(autouse=True)
def _at_home(cloud_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home of this cloud is that of these tests alone: others of this process have their own."""
    _settle(monkeypatch, cloud_home)


@pytest.fixture(scope="session")
def running(cloud_home: Path) -> Iterator[control.CloudStatus]:
    """The cloud the tests of this process share."""
    with pytest.MonkeyPatch.context() as patch:
        _settle(patch, cloud_home)
        now, _ = control.up(faults=_faults_file(cloud_home))
    try:
        yield now
    finally:
        with pytest.MonkeyPatch.context() as patch:
            _settle(patch, cloud_home)
            control.down()


def _faults_file(folder: Path) -> Path:
    """Faults for jobs with these names; all other jobs run as they are."""
    path = folder / "faults.yaml"
    path.write_text(
        """
- match: { job: "fault-failed*" }
  outcome: { status: Failed, failure_reason: "CapacityError: Unable to provision requested ML compute capacity." }
- match: { job: "fault-quota*" }
  times: 1
  outcome: { api_error: ResourceLimitExceeded, message: "no more of those" }
- match: { job: "fault-stopped*" }
  outcome: { stopped: MaxWaitTimeExceeded }
- match: { job: "fault-interrupt*" }
  outcome: { interrupt_after_seconds: 1.5 }
- match: { job: "fault-line*" }
  times: 1
  outcome: { interrupt_after_line: "step 2" }
- match: { job: "fault-throttle*" }
  outcome: { throttle: 2 }
"""
    )
    return path


@pytest.fixture(scope="session")
def aws(running: control.CloudStatus, cloud_home: Path) -> Iterator[Aws]:
    with pytest.MonkeyPatch.context() as patch:
        _settle(patch, cloud_home)
        found = Aws(control.environment())
    assert found.endpoint == running.endpoint
    found.prepare()
    yield found
    found.close()
