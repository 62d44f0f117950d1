"""A real browser, for the pages that are made and for what a page of somebody else may do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def browser(tmp_path: Path) -> list[str]:
    """The command of a headless Chromium."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium on PATH: what needs a real browser was not tried (Debian: the package chromium)")
    return [
        found,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={tmp_path}/me",
    ]
