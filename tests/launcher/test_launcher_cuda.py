"""The image's own CUDA libraries come first on a host whose driver is older than they are, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sagefit_launcher import cuda_compat

CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Sun May 12 19:39:15 UTC 2024\nGCC version:  gcc 11.4.0\n"
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@U16-I3-C07-2-1)  "
    "Fri May 16 00:08:46 UTC 2025\nGCC version:  gcc version 12.2.0\n"
)


def variables(
    folder: Path, driver: str | None, library: str | None = "libcuda.so.575.57.08", **environment: str
) -> dict[str, str]:
    """What is set for a driver's text and the file that the image's link leads to."""
    compat, version = folder / "compat", folder / "version"
    compat.mkdir()
    if library:
        (compat / "libcuda.so.1").symlink_to(library)
    if driver:
        version.write_text(driver, encoding="utf-8")
    found = cuda_compat.variables(environment, compat, version)
    return {name: value.replace(str(folder), "") for name, value in found.items()}


@pytest.mark.parametrize("text", [CLOSED, OPEN])
@pytest.mark.parametrize(
    ("driver", "older"),
    [("535.183.01", True), ("575.57.07", True), ("575.57.08", False), ("580.65.06", False), ("1000.1", False)],
)
def test_a_driver_that_is_older_gets_the_libraries(tmp_path: Path, text: str, driver: str, older: bool) -> None:
    assert variables(tmp_path, text.format(driver)) == ({"LD_LIBRARY_PATH": "/compat"} if older else {})


def test_what_the_image_has_set_comes_after_them(tmp_path: Path) -> None:
    found = variables(tmp_path, CLOSED.format("535.183.01"), LD_LIBRARY_PATH="/usr/local/lib")
    assert found == {"LD_LIBRARY_PATH": "/compat:/usr/local/lib"}


@pytest.mark.parametrize(
    ("driver", "library"),
    [
        (None, "libcuda.so.575.57.08"),
        (CLOSED.format("535.183.01"), None),
        ("NVRM version: unknown\n", "libcuda.so.575.57.08"),
        (CLOSED.format("535.183.01"), "libcuda.so"),
    ],
    ids=["no GPU", "no libraries", "a driver that says nothing", "a library that says nothing"],
)
def test_nothing_is_set_where_one_of_them_is_missing(tmp_path: Path, driver: str | None, library: str | None) -> None:
    assert variables(tmp_path, driver, library) == {}
