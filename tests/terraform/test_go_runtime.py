"""Terraform's garbage collector: seldom at work while there is memory, and the user's own settings stay."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from sagefit import go_runtime

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOGC", "GOMEMLIMIT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("memory", "limit"),
    [(GIB, None), (2 * GIB, "256MiB"), (24 * GIB, "3072MiB"), (512 * GIB, "4096MiB")],
)
def test_the_limit_is_a_share_of_the_memory(memory: int, limit: str | None) -> None:
    assert go_runtime.environment(memory) == ({"GOGC": "800", "GOMEMLIMIT": limit} if limit else {})


@pytest.mark.parametrize("name", ["GOGC", "GOMEMLIMIT"])
def test_the_user_s_own_settings_stay(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "100")
    assert go_runtime.environment(24 * GIB) == {}


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"memory.max": "max\n"}, None),
        ({"memory.max": "1048576\n"}, 1048576),
        ({"memory/memory.limit_in_bytes": "2097152\n"}, 2097152),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
    ],
)
def test_a_container_s_limit_counts(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert go_runtime.memory(tmp_path) == (limit or psutil.virtual_memory().total)
