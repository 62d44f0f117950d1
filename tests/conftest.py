"""Shared by all tests: nothing depends on this user's caches, on chance or on how busy the machine is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["SAGEFIT_CATALOG"] = str(Path(__file__).parent / "no-catalog")  # prices do not depend on this user's cache

# The same examples every time, so that a change that is not at fault is not stopped by a new find.
# HYPOTHESIS_PROFILE=search looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """What a test, or what it calls, leaves in the environment must not reach the next one."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
