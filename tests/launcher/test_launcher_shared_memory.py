"""Batches on their way through ``/dev/shm`` are memory of the host, whether a process has them mapped or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import OF_FILES, Container
from .kernel import can_mount, mounted

# What others put into /dev/shm meanwhile would count here, so the container has one of its own. Where the kernel gives
# no such right, these tests at least run one after the other.
pytestmark = [OF_FILES, pytest.mark.xdist_group("shared memory")]

MIB = 1024**2

SCRIPT = """
import mmap, tempfile, time
with tempfile.TemporaryFile(dir="/dev/shm") as file:
    file.truncate(96 * 1024**2)
    batch = mmap.mmap(file.fileno(), 0)
    for start in range(0, len(batch), 1024**2):
        batch[start : start + 1024**2] = b"x" * 1024**2
    HOLD
    time.sleep(3)
"""


@pytest.mark.parametrize("hold", ["batch.close()", "pass"], ids=["on its way", "mapped"])
def test_shared_memory_counts_once(container: Container, hold: str) -> None:
    if can_mount():
        container.before = mounted(Path("/dev/shm"), "512m")
    report = container.run(SCRIPT.replace("HOLD", hold)).report
    # The last samples say most: the first ones may fall into the writing, and the very last into the file's removal.
    last = [sample["host_bytes"] for sample in report["samples"][1:][-2:]]
    assert 96 * MIB < max(last, default=report["host_memory"]["peak_bytes"]) < 180 * MIB
    assert report["host_memory"]["peak_bytes"] < 180 * MIB
