"""The page on AWS names what judges instead of AWS in the version that judges."""

from __future__ import annotations

import importlib.util
import re
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import yaml_tables
from sagefit.paths import ROOT

ROWS: list[dict[str, Any]] = yaml_tables.read(ROOT / "tests" / "aws" / "oracles.yaml")
OURS = [row for row in ROWS if row.get("locked", [""])[0] in ("requirements.lock", "requirements-dev.lock")]


@pytest.fixture(scope="module")
def oracles() -> Any:
    """The module ``docs/oracle_table.py``."""
    spec = importlib.util.spec_from_file_location("oracle_table", ROOT / "docs" / "oracle_table.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["oracle"])
def test_the_files_that_ask_an_oracle_are_there(row: dict[str, Any]) -> None:
    assert row["asked"]
    assert [file for file in row["asked"] if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("row", OURS, ids=lambda row: row["oracle"])
def test_what_judges_here_is_what_the_page_names(oracles: Any, row: dict[str, Any]) -> None:
    assert oracles.version_of(row) == version(row["locked"][1])


def test_another_lock_makes_another_page(oracles: Any, tmp_path: Path) -> None:
    (row,) = (row for row in ROWS if row.get("locked", ["", ""])[1] == "moto")
    lock = tmp_path / "requirements.lock"
    shutil.copy(ROOT / "requirements.lock", lock)
    lock.write_text(re.sub(r"(?m)^moto==\S+", "moto==99.1", lock.read_text(encoding="utf-8")), encoding="utf-8")
    assert oracles.version_of(row, tmp_path) == "99.1"
    lock.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"requirements\.lock: 0 versions of moto"):
        oracles.version_of(row, tmp_path)
