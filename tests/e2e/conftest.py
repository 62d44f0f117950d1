"""One embedded cloud with one platform for the tests that follow a job from its file to its model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli_runner import Done, Sagefit
from job_files import write_job


@dataclass
class World:
    """A running cloud with a platform, and the first run of the quickstart job on it."""

    sagefit: Sagefit
    first_run: Done
    applied: list[Path] = field(default_factory=list)  # jobs that the last test destroys

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


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def scratch(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an applied job, for tests that change it; ``src/train.py`` beside it is its script."""
    job = write_job(tmp_path_factory.mktemp("scratch"), {"name": "scratch"})
    world.sagefit("plan", job)
    world.sagefit("apply", job)
    return job
