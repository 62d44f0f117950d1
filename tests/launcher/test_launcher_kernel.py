"""Real faults: a memory kill by the kernel, a full disk, a full ``/dev/shm``.

Where the kernel lets a test make a memory control group or mount a file system, it does. Elsewhere the watcher of
conftest kills, and a stand-in for ``os.statvfs`` says that a file system is full.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .conftest import OF_FILES, Container, Killer
from .kernel import can_mount, inside, memory_group, mounted

pytestmark = OF_FILES

GROW = "held = []\nwhile True:\n    held.append(bytearray(b'x' * 4 * 1024**2))\n"
MIB = 1024**2
WAYS = ["mounted", "told"] if can_mount() else ["told"]


def told_full(container: Container, folder: str) -> None:
    """Lets the launcher believe that a file system is full."""
    place = container.root.parent / "stand-in"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import os\nreal = os.statvfs\n"
        "class Full:\n    f_blocks, f_bfree, f_bavail, f_frsize, f_files, f_favail = 100, 1, 1, 1024**2, 9, 9\n"
        f"os.statvfs = lambda path: Full if str(path) == {folder!r} else real(path)\n"
    )
    container.environment["PYTHONPATH"] = str(place)


def test_the_kernel_kills_the_script_for_memory(container: Container) -> None:
    container.code("train.py", GROW)
    with memory_group(200) as group:
        if group:
            container.before = inside(group)
            outcome = container.end(container.start())
            assert outcome.report["host_memory"]["source"] == "cgroup"
            assert outcome.report["host_memory"]["oom_kills"] == 1
            assert outcome.report["host_memory"]["cgroup_peak_bytes"] > 190 * MIB
        else:
            container.limit(200)
            process = container.start()
            Killer(process.pid, 200).start()
            outcome = container.end(process)
    assert outcome.exit_code == 128 + signal.SIGKILL
    assert outcome.failure
    assert outcome.failure.startswith("sagefit: host_memory: train.py was killed (signal 9) with the host at 0.")
    assert outcome.report["host_memory"]["limit_bytes"] == 200 * MIB
    assert outcome.report["class"] == "host_memory"


def test_the_kernel_kills_a_worker_of_the_script(container: Container) -> None:
    """The script itself only says that something is missing."""
    container.code("grow.py", GROW)
    container.code(
        "train.py",
        "import subprocess, sys\nsubprocess.run([sys.executable, 'grow.py'])\nraise KeyError('no batch came')",
    )
    with memory_group(200) as group:
        if not group:  # nothing counts kills: the script's own words are all there is
            assert container.run("raise KeyError('no batch came')").report["class"] == "code"
            return
        container.before = inside(group)
        outcome = container.end(container.start())
    assert outcome.exit_code == 1
    assert outcome.failure
    assert outcome.failure.startswith("sagefit: host_memory: train.py ended with exit code 1, the kernel having killed")


FULL_DISK = (
    "import os, pathlib, time\n"
    "file = (pathlib.Path(os.environ['SM_MODEL_DIR']) / 'weights').open('wb')\n"
    "try:\n    while True:\n        file.write(bytes(1024**2)); file.flush()\n"
    "except OSError:\n    time.sleep(0.5)\n    raise"
)


@pytest.mark.parametrize("how", WAYS)
def test_a_full_disk(container: Container, how: str) -> None:
    model = container.root / "model"
    if how == "mounted":
        container.before = mounted(model, "8m")
        outcome = container.run(FULL_DISK)
    else:
        told_full(container, str(container.root))
        outcome = container.run("raise OSError(28, 'No space left on device')")
    assert outcome.exit_code == 1
    assert outcome.failure
    assert outcome.failure.startswith(
        "sagefit: disk: train.py ended with exit code 1: OSError: [Errno 28] No space left on device; "
    )
    full = {"mounted": f"{model} was 100% full (0.01 of 0.01 GiB)", "told": f"{container.root} was 99% full ("}[how]
    assert full in outcome.failure
    paths = [disk["path"] for disk in outcome.report["disks"]]
    assert (str(model) in paths) == (how == "mounted")


SAVES_UNTIL_IT_IS_FULL = (
    "import os, pathlib, time\n"
    "folder = pathlib.Path(os.environ['SM_CHECKPOINT_DIR'])\n"
    "(folder / 'step-1').write_bytes(bytes(1024**2))\n"
    "time.sleep(1)\n"
    "(folder / 'step-2').mkdir()\n"
    "for shard in range(100):\n    (folder / 'step-2' / str(shard)).write_bytes(bytes(1024**2))\n    time.sleep(0.1)"
)


@pytest.mark.parametrize("how", WAYS)
def test_a_checkpoint_that_did_not_fit_is_none(container: Container, how: str) -> None:
    """Some of its shards are whole, and of no use."""
    container.config("checkpointconfig", {"LocalPath": "/opt/ml/checkpoints"})
    checkpoints = container.root / "checkpoints"
    script = SAVES_UNTIL_IT_IS_FULL
    if how == "mounted":
        container.before = mounted(checkpoints, "8m")
    else:
        told_full(container, str(checkpoints))
        script = script.replace("range(100)", "range(8)") + "\nraise OSError(28, 'No space left on device')"
    report = container.run(script).report
    assert report["class"] == "disk"
    assert report["checkpoints"]["newest"] == "step-1"
    assert report["checkpoints"]["files"] > 2
    assert report["checkpoints"]["saved_seconds"] < report["seconds"] - 1


@pytest.mark.parametrize("how", WAYS)
def test_a_disk_too_full_for_the_failure_file(container: Container, tmp_path: Path, how: str) -> None:
    """The output folder lies on the disk that the script fills to the last byte: some room was kept for this."""
    output = container.root / "output"
    if how == "mounted":
        container.before = mounted(output, "4m", saved=tmp_path / "saved")
        outcome = container.run(FULL_DISK.replace("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"))
        output = tmp_path / "saved"
    else:
        told_full(container, str(container.root))
        outcome = container.run(
            "import os, pathlib\n"
            "kept = pathlib.Path(os.environ['SM_OUTPUT_DIR'], '.sagefit-reserve').stat()\n"
            "assert kept.st_blocks * 512 >= 256 * 1024\nraise OSError(28, 'No space left on device')"
        )
    assert outcome.exit_code == 1
    failure = (output / "failure").read_text()
    assert failure.startswith("sagefit: disk: train.py ended with exit code 1: OSError: [Errno 28]")
    assert '"class":"disk"' in (output / "data" / "sagefit.json").read_text()
    assert sorted(path.name for path in output.iterdir()) == ["data", "failure"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("end", ["bus", "space"])
def test_full_shared_memory(container: Container, how: str, end: str) -> None:
    real = {
        "bus": "import mmap, time\nfile = open('/dev/shm/batch', 'w+b')\nfile.truncate(16 * 1024**2)\n"
        "view = mmap.mmap(file.fileno(), 0)\nsize = 1024**2\n"
        "for part in range(16):\n    view[part * size:(part + 1) * size] = bytes(size)\n    time.sleep(0.2)",
        "space": "import time\nfile = open('/dev/shm/batch', 'wb')\n"
        "try:\n    while True: file.write(bytes(1024**2)); file.flush()\n"
        "except OSError: time.sleep(0.5); raise",
    }
    told = {
        "bus": "import os, signal\nos.kill(os.getpid(), signal.SIGBUS)",
        "space": "raise OSError(28, 'No space left on device')",
    }
    if how == "mounted":
        container.before = mounted(Path("/dev/shm"), "8m")
        outcome = container.run(real[end])
    else:
        told_full(container, "/dev/shm")
        outcome = container.run(told[end])
    assert outcome.failure
    words = {
        "bus": "train.py was ended by signal 7",
        "space": "train.py ended with exit code 1: OSError: [Errno 28] No space left on device",
    }[end]
    assert outcome.failure.startswith(f"sagefit: shared_memory: {words}")
    assert "; /dev/shm was " in outcome.failure
    shared = outcome.report["shared_memory"]
    assert shared["peak_bytes"] >= 0.9 * shared["total_bytes"]


def test_a_bus_error_with_room_in_shared_memory_is_something_else(container: Container) -> None:
    outcome = container.run("import os, signal\nos.kill(os.getpid(), signal.SIGBUS)")
    assert outcome.exit_code == 128 + signal.SIGBUS
    assert outcome.report["class"] == "code"
