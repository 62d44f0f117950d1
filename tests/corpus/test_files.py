"""Tests that are left out while nothing changes that tells texts apart import nothing else of Sagefit."""

from __future__ import annotations

from pathlib import Path

import pytest

from imported import imports
from sagefit.paths import ROOT

HERE = Path(__file__).parent
MARKED = [file for file in HERE.glob("*.py") if not file.stem.startswith("test_") or "\npytestmark" in file.read_text()]
ROOM = [*(ROOT / "python" / "sagefit" / "failures").glob("*.py")]
DECIDE = {"corpus", "sagefit.failures", "sagefit.job.model", "sagefit.paths", "sagefit_launcher", "yaml_tables"}
LIBRARIES = {"pytest", "yaml"}


@pytest.mark.parametrize("file", [*MARKED, *ROOM], ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_what_they_import_decides_whether_they_run(file: Path) -> None:
    own = {"sagefit.failures" if name.startswith("sagefit.failures.") else name for name in imports(file)}
    assert own <= DECIDE | LIBRARIES


def test_what_scores_all_texts_is_marked() -> None:
    assert {file.stem for file in MARKED if file.stem.startswith("test_")} == {
        f"test_{name}" for name in ("corpus", "noise", "vocabulary")
    }
