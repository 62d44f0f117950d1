"""A script on several hosts is told the name of its own, where the image holds the file that AWS's images hold."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sagefit_launcher import host_name

from .conftest import LAUNCHER, OF_FILES, Container, ship

pytestmark = OF_FILES

# It answers as that file does, and stands for it.
C = """
#include <stddef.h>
#include <string.h>

int gethostname(char *name, size_t length)
{
    strncpy(name, PLACEHOLDER_HOSTNAME, length);
    return 0;
}
"""
ASK = "import socket; print(socket.gethostname())"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The image's file; what is made of it lies in the folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "changehostname.c"
    path.write_text(C, encoding="utf-8")
    return path


def test_a_script_is_told_the_name_of_its_host(source: Path) -> None:
    found = host_name.variables(os.environ, "algo-2", source)
    told = subprocess.run(
        [sys.executable, "-c", ASK], env={**os.environ, **found}, capture_output=True, text=True, check=True
    )
    assert told.stdout == "algo-2\n"
    assert told.stderr == ""


def test_what_is_preloaded_already_stays(source: Path) -> None:
    found = host_name.variables({**os.environ, "LD_PRELOAD": "/libmine.so"}, "algo-1", source)
    assert found["LD_PRELOAD"].endswith("/libchangehostname.so:/libmine.so")


@pytest.mark.parametrize(
    ("text", "host", "path"),
    [
        ("int main() { return 0; }", "algo-1", None),
        ("PLACEHOLDER_HOSTNAME is no C", "algo-1", None),
        (C, 'algo-1"; system("ls"); "', None),
        (C, "algo-1", "/nowhere"),
    ],
    ids=["another file", "not to be compiled", "no name of a host", "no compiler"],
)
def test_without_what_it_needs_nothing_is_set(source: Path, text: str, host: str, path: str | None) -> None:
    source.write_text(text, encoding="utf-8")
    environment = {**os.environ, **({"PATH": path} if path else {})}
    assert host_name.variables(environment, host, source) == {}


def test_an_image_without_the_file_has_nothing_set(tmp_path: Path) -> None:
    assert host_name.variables(os.environ, "algo-1", tmp_path / "changehostname.c") == {}


@pytest.mark.parametrize(("hosts", "told"), [(["algo-1", "algo-2"], "algo-2"), (["algo-2"], "")], ids=["two", "one"])
def test_the_launcher_sets_it_on_several_hosts(container: Container, source: Path, hosts: list[str], told: str) -> None:
    text = (LAUNCHER / "host_name.py").read_text(encoding="utf-8")
    ship(container.shipped, {"host_name.py": text.replace(str(host_name.SOURCE), str(source))})
    container.environment |= {"SAGEFIT_TORCHRUN": "false"}
    container.config("resourceconfig", {"current_host": "algo-2", "hosts": hosts})
    ran = container.run('import os, socket; print(f\'[{socket.gethostname() if os.getenv("LD_PRELOAD") else ""}]\')')
    assert (ran.exit_code, f"[{told}]\n" in ran.stdout) == (0, True), ran.stdout
