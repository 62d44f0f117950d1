"""Shared by all tests: nothing depends on this user's caches, on chance or on how busy the machine is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import own_environment
from limits import pytest_timeout_cancel_timer, pytest_timeout_set_timer  # noqa: F401 - hooks

pytest_plugins = [
    "browser",
    "levels",
    "preloaded",
    "changed",
    "second_try",
    "terraform_starts",
    "leftovers",
    "unchanged",
]

own_environment.settle()

# The same examples every time, so that a change that is not at fault is not stopped by a new find.
# HYPOTHESIS_PROFILE=search looks for new ones.
# How fast they are made says how busy the machine is, and nothing about what is tested.
_PATIENT = [HealthCheck.too_slow]
settings.register_profile("same", derandomize=True, deadline=None, database=None, suppress_health_check=_PATIENT)
settings.register_profile("search", deadline=None, max_examples=1000, suppress_health_check=_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


_FILE: list[Path] = []  # the last one that a test came from
_AT_FIRST: dict[str, str] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A fixture of a file may change the environment for it; one of the session would do so for all that come later."""
    now = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    if not _FILE:
        _AT_FIRST.update(now)
    elif _FILE[-1] != item.path:
        changed = sorted(name for name in {*now, *_AT_FIRST} if now.get(name) != _AT_FIRST.get(name))
        assert not changed, (
            f"{_FILE[-1]}, or a fixture that it needs, has changed the environment: {', '.join(changed)}"
        )
    _FILE[:] = [item.path]


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """What a test, or what it calls, leaves in the environment must not reach the next one."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
