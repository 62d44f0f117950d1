"""Disks and shared memory of a host: as large as asked for, and full when they are."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cloud.aws_user import Aws
from sagefit.cloud import control
from sagefit_cloud import namespace
from sagefit_cloud.container import Container

FILL = """
import os, pathlib, tempfile
root = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"])
try:
    with (root / PLACE).open("wb") as file:
        for _ in range(400):
            file.write(bytes(1 << 20))
            file.flush()
except OSError as error:
    print("errno", error.errno)
print("MiB", (root / PLACE).stat().st_size >> 20)
"""


def filled(aws: Aws, place: str) -> list[str]:
    """What a job says that fills up a file."""
    resources = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}
    job = aws.run(FILL.replace("PLACE", repr(place)), ResourceConfig=resources)
    return aws.lines(job["TrainingJobName"])


def test_the_temporary_folder_is_on_the_volume(aws: Aws) -> None:
    resources = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}
    script = (
        FILL.replace("root / PLACE", "pathlib.Path(tempfile.gettempdir()) / 'big'") + "print(tempfile.gettempdir())"
    )
    said, size, folder = aws.lines(aws.run(script, ResourceConfig=resources)["TrainingJobName"])
    assert said == f"errno {errno.ENOSPC}"
    assert 55 <= int(size.split()[1]) <= 10**9 / 16 / 2**20
    assert len(folder) <= 50  # a socket in it has a name of 108 bytes at most
    assert not Path(folder).exists()


def test_a_full_disk_refuses_to_be_written(aws: Aws) -> None:
    said, size = filled(aws, "model/big")
    assert said == f"errno {errno.ENOSPC}"
    assert 55 <= int(size.split()[1]) <= 10**9 / 16 / 2**20


def test_full_shared_memory_refuses_to_be_written(aws: Aws) -> None:
    said, size = filled(aws, "/dev/shm/big")  # half of the 8 GiB that the instance has, at 1/16
    assert said == f"errno {errno.ENOSPC}"
    assert size == "MiB 256"
    assert not Path("/dev/shm/big").exists()


def test_nothing_stays_mounted(running: control.CloudStatus, aws: Aws) -> None:
    name = aws.start("print('done')")
    aws.wait(name)
    mounts = Path(f"/proc/{running.pid}/mounts")
    deadline = time.monotonic() + 30
    while f"/{name}-" in mounts.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert f"/{name}-" not in Path("/proc/self/mounts").read_text()


def container(folder: Path, **options: Any) -> Container:
    found = Container("algo-1", folder / "algo-1", 2**30, lambda _: None, disk_limit=2**20, **options)
    found.prepare({})
    return found


def test_without_a_file_system_of_its_own_a_disk_is_watched(tmp_path: Path) -> None:
    host = container(tmp_path)
    (host.ml / "model" / "small").write_bytes(bytes(2**19))
    assert not host.disk_is_full
    (host.ml / "model" / "big").write_bytes(b"x" * 2**21)
    assert host.disk_is_full
    host.close()


def test_a_command_runs_where_mounts_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "refused.py"
    script.write_text(
        "import runpy, sys\n"
        "import ctypes\n"
        "class Refusing:\n"
        "    def unshare(self, flags): return -1\n"
        "ctypes.CDLL = lambda *a, **k: Refusing()\n"
        "path, *sys.argv[1:] = sys.argv[1:]\n"
        "runpy.run_path(path, run_name='__main__')\n"
    )
    command = [sys.executable, str(script), namespace.__file__, "1024", "", "/bin/echo", "here"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "here\n"


def test_a_folder_of_the_volume_stands_in_the_place_of_tmp(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "tmp")
    script = "echo $TMPDIR; echo here > /tmp/sagefit-was-here"
    command = [sys.executable, namespace.__file__, "1024", str(tmp_path / "tmp"), "/bin/sh", "-c", script]
    for given, seen in {str(link): "/tmp", "/elsewhere": "/elsewhere"}.items():
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={"TMPDIR": given})
        assert done.stdout == f"{seen}\n"
        assert (tmp_path / "tmp" / "sagefit-was-here").read_text() == "here\n"
    assert not Path("/tmp/sagefit-was-here").exists()


def test_tmp_stays_where_the_container_needs_what_lies_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = container(tmp_path)
    monkeypatch.setattr("sagefit_cloud.container._TMP", tmp_path)
    assert host._own_tmp() == ""
    monkeypatch.setattr("sagefit_cloud.container._TMP", tmp_path / "elsewhere")
    assert host._own_tmp() == str(host.folder / "tmp")
    host.close()
