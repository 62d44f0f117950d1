"""One embedded cloud with one platform for the tests that follow a job from its file to its model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli_runner import Done, Sagefit
from job_files import write_job


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever order the files are given in, the platform goes last."""
    items.sort(key=lambda item: item.path.name == "test_teardown.py")


#: The first page of a list of SageMaker as it finds a new job: a page is filtered after it was taken.
NEWEST: dict[str, Any] = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 100}


@dataclass
class World:
    """A running cloud with a platform, and the first run of the quickstart job on it."""

    sagefit: Sagefit
    first_run: Done
    applied: list[Path] = field(default_factory=list)  # jobs that the last test destroys

    def apply(self, job: Path) -> None:
        """Apply a job that stays up to the last test, which destroys it."""
        self.applied.append(job)
        self.sagefit("plan", job)
        self.sagefit("apply", job)

    @contextlib.contextmanager
    def destroying(self, job: Path) -> Iterator[None]:
        """Destroy a job at the end, also when its test fails: the last test removes the platform below it."""
        try:
            yield
        except BaseException:
            self.sagefit("destroy", job, "--yes", check=None)
            raise
        self.sagefit("destroy", job, "--yes")

    @contextlib.contextmanager
    def stopping(self, run: str) -> Iterator[None]:
        """Stop a run whose test fails: a job cannot be changed or destroyed while it runs."""
        try:
            yield
        except BaseException:
            self.sagefit("stop", run, check=None)
            raise

    def client(self, service: str) -> Any:
        """A boto3 client with nothing but what ``cloud env`` prints."""
        env = self.sagefit.aws_environment()
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=env["AWS_ENDPOINT_URL"],
            region_name=env["AWS_REGION"],
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        )


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """What ``make demo`` does, in a folder of its own."""
    sagefit = Sagefit(tmp_path_factory.mktemp("world") / "home", CLOUD="local")
    sagefit("cloud", "up")
    try:
        sagefit("platform", "apply", "--yes")
        yield World(sagefit, sagefit("run", "quickstart", "--yes"))
    finally:
        sagefit("cloud", "down")


@pytest.fixture
def nowhere(tmp_path: Path) -> Sagefit:
    """A command line with no cloud behind it."""
    return Sagefit(tmp_path / "home", CLOUD="local")


@pytest.fixture(scope="package")
def scratch(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an applied job, for tests that change it; ``src/train.py`` beside it is its script."""
    job = write_job(tmp_path_factory.mktemp("scratch"), {"name": "scratch"})
    world.apply(job)
    return job
