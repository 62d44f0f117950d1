"""What Sagefit keeps on a machine is its owner's."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sagefit import paths
from sagefit.gitops.parallel import SUMMARY, Outcome, summarise
from security.conftest import note


def test_the_state_folder_is_shut_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    paths.shut_home()  # nothing is there yet
    (tmp_path / ".sagefit" / "state").mkdir(parents=True)
    (tmp_path / ".sagefit").chmod(0o755)
    paths.shut_home()
    assert stat.S_IMODE((tmp_path / ".sagefit").stat().st_mode) == 0o700
    note(request, "another user reads a state in .sagefit", "read", "the folder is its owner's")


def test_a_summary_of_plans_is_its_owner_s(tmp_path: Path) -> None:
    out = tmp_path / "plans"
    summarise(out, [Outcome("dev/platform", None, 1, "no")])
    assert stat.S_IMODE((out / SUMMARY).stat().st_mode) == 0o600
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    summarise(out, [])
    assert '"stacks": []' in (out / SUMMARY).read_text(encoding="utf-8")
