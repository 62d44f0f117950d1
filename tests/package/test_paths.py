"""Where things lie, also where the home of a user is not to be written to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from sagefit.paths import user_cache

NOBODY = 65534


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "state"))


def test_what_can_be_made_again_lies_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache() == tmp_path / ".cache/sagefit"
    assert list(tmp_path.iterdir()) == []  # nothing is made by asking
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert user_cache() == tmp_path / "other/sagefit"


def test_a_home_that_is_read_only_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        monkeypatch.setenv("HOME", name)
        assert user_cache() == home / ".cache/sagefit"
        home.chmod(0o555)
        if os.geteuid() == 0:  # who may write anywhere
            os.seteuid(NOBODY)
        try:
            assert user_cache() == tmp_path / "state/cache"
        finally:
            os.seteuid(os.getuid())


def test_a_home_that_is_no_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert user_cache() == tmp_path / "state/cache"
