"""Environments are built once, by whoever comes first, and half of one is none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sagefit import environments
from sagefit.checkov import environment
from sagefit.errors import FAILED, SagefitError


def test_who_comes_later_waits_and_builds_nothing(tmp_path: Path) -> None:
    built: list[Path] = []
    began = threading.Event()

    def build(folder: Path) -> None:
        began.set()
        folder.mkdir()
        built.append(folder)

    first = threading.Thread(target=environments.built, args=(tmp_path / "env", build))
    first.start()
    began.wait()
    assert environments.built(tmp_path / "env", build) == tmp_path / "env"
    first.join()
    assert built == [tmp_path / "env"]


def test_what_was_not_finished_is_built_again(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise SagefitError("no index")

    with pytest.raises(SagefitError):
        environments.built(tmp_path / "env", fail)
    environments.built(tmp_path / "env", Path.mkdir)
    assert not (tmp_path / "env" / "half").exists()


def test_another_list_is_another_environment() -> None:
    assert environments.digest(b"checkov==1") != environments.digest(b"checkov==2")


def test_a_package_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    environments.create(tmp_path / "env")
    with pytest.raises(SagefitError, match="nothing-of-that-name") as caught:
        environments.install(tmp_path / "env", "--no-index", "nothing-of-that-name")
    assert caught.value.exit_code == FAILED
    assert "pip" in (caught.value.hint or "")


def test_a_checkov_of_ones_own_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEFIT_CHECKOV", str(tmp_path / "checkov"))
    assert environment() == tmp_path / "checkov"
