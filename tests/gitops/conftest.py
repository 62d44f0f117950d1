"""What the tests of the loop share: a project with a history, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitops.checkouts import Checkout, clone, make_origin


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The project on ``main``. Nobody writes into it."""
    return make_origin(tmp_path_factory.mktemp("origin") / "project")


@pytest.fixture
def checkout(origin: Checkout, tmp_path: Path) -> Checkout:
    """A clone to change."""
    return clone(origin.path, tmp_path / "clone", tmp_path / "home")
