"""Which review settings a pull request is judged by."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sagefit.gitops.bundle import settings_of
from sagefit.reviewing import TUNING_FILE

ACCEPTED = """
suppress:
  - { rule: job-spot-lost, address: "*", reason: our own finding, expires: 2099-01-01 }
"""


def git(root: Path, *args: str) -> str:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    return subprocess.run(["git", *author, *args], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "change")
    return git(root, "rev-parse", "HEAD")


def test_a_change_cannot_accept_its_own_findings(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    base = commit(tmp_path)
    (tmp_path / TUNING_FILE).write_text(ACCEPTED, encoding="utf-8")
    merged = commit(tmp_path)
    assert settings_of(base, tmp_path).suppress == []
    assert [each.rule for each in settings_of(merged, tmp_path).suppress] == ["job-spot-lost"]


def test_a_repository_inside_a_folder_has_its_own_settings(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    inside = tmp_path / "ml"
    inside.mkdir()
    (inside / TUNING_FILE).write_text(ACCEPTED, encoding="utf-8")
    (tmp_path / TUNING_FILE).write_text("price_factor: 3", encoding="utf-8")
    found = settings_of(commit(tmp_path), inside)
    assert found.price_factor == 1.5
    assert found.suppress
