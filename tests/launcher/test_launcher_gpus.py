"""Memory and use of GPUs as the driver tells them.

No GPU is needed, and none is used: a shell script stands in for nvidia-smi, and where there is a C compiler a small
library for libnvidia-ml. Both speak the formats of NVIDIA's documentation; neither has ever met a driver.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import OF_FILES, Container

pytestmark = OF_FILES

MIB = 1024**2
TOLD = "import os, pathlib, time\npathlib.Path(os.environ['PID_FILE']).write_text(str(os.getpid()))\n"
#: Goes on until the report on the way tells of both GPUs, of their work, and of the script's own memory if it is told.
UNTIL_SEEN = """
import json
report, end = pathlib.Path(os.environ["SAGEFIT_ML_ROOT"], "output/data/sagefit.json"), time.monotonic() + 60
while time.monotonic() < end:
    try:
        told = json.loads(report.read_text())
    except (OSError, ValueError):
        told = {}
    gpus = told.get("gpus") or []
    if told.get("busy") and len(gpus) == 2 and (gpus[1]["script_peak_bytes"] or not OWN):
        break
    time.sleep(0.1)
"""
SMI = """#!/bin/sh
case "$1" in
--list-gpus) echo "GPU 0: A10G (UUID: GPU-x)"; echo "GPU 1: A10G (UUID: GPU-y)"; exit;;
--query-compute-apps=*)
  while :; do
    echo "GPU-y, $(cat "$PID_FILE"), 10000"; echo "GPU-y, 999999, 900"; echo "GPU-x, 999998, [N/A]"; sleep 0.1
  done;;
esac
while :; do
  echo "0, NVIDIA A10G, 1024, 23028, 100"; echo "1, NVIDIA A10G, 11514, 23028, 20"
  echo "1, NVIDIA A10G, 5, 23028, [N/A]"; echo "2, NVIDIA A10G, [N/A], 23028, 0"; echo "garbage"; sleep 0.1
done
"""


@pytest.fixture
def watched(container: Container) -> Container:
    """A container whose script leaves its process id where the stand-ins look for it."""
    file = container.root / "pid"
    file.write_text("0")
    container.environment |= {"PID_FILE": str(file), "NVML_STAND_IN_PID": str(file)}
    return container


def place_tool(container: Container, text: str) -> None:
    """Puts a stand-in for nvidia-smi on the path."""
    fake = container.root.parent / "bin" / "nvidia-smi"
    fake.parent.mkdir()
    fake.write_text(text)
    fake.chmod(0o755)
    container.environment["PATH"] = f"{fake.parent}:{container.environment['PATH']}"


def place_library(container: Container, *options: str) -> None:
    """Compiles the stand-in for NVML."""
    library = container.root.parent / "lib" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    source = str(Path(__file__).with_name("nvml_stand_in.c"))
    subprocess.run(["cc", "-shared", "-fPIC", *options, "-o", str(library), source], check=True)
    container.environment["LD_LIBRARY_PATH"] = str(library.parent)


@pytest.mark.parametrize("source", ["nvidia-smi", *(["NVML", "old NVML"] if shutil.which("cc") else [])])
def test_gpus_are_recorded(watched: Container, source: str) -> None:
    if source == "nvidia-smi":
        place_tool(watched, SMI)
    else:
        place_library(watched, *(["-DOLD"] if source == "old NVML" else []))
    script = f"print('GPUS', os.environ['SM_NUM_GPUS'])\nOWN = {source != 'old NVML'}\n{UNTIL_SEEN}raise SystemExit(3)"
    outcome = watched.run(TOLD + script)
    assert outcome.exit_code == 3
    assert "GPUS 2\n" in outcome.stdout
    # Without what the driver keeps for itself, where it tells that, and who uses it.
    first, second, total, own = {
        "nvidia-smi": (1024, 11514, 23028, 10000 * MIB),
        "NVML": (5500, 11500, 24000, 10000 * MIB),
        "old NVML": (6000, 12000, 24000, None),
    }[source]
    rest = {"name": "NVIDIA A10G", "total_bytes": total * MIB}
    assert outcome.report["gpus"] == [
        {"index": 0, "peak_bytes": first * MIB, "script_peak_bytes": None, **rest},
        {"index": 1, "peak_bytes": second * MIB, "script_peak_bytes": own, **rest},
    ]
    assert f" gpu_memory_percent={100 * second / total:.1f} " in outcome.stdout
    # The first works all the time and the second a fifth of it, by the driver; the script sleeps.
    busy = outcome.report["busy"]
    assert (busy["gpu_percent"], busy["samples_before"], busy["idle_samples"]) == (60, 0, 0)
    assert busy["samples"] >= 1
    last = 5 if source == "nvidia-smi" else second  # the stand-in's figure goes up and down
    assert outcome.report["samples"][-1]["gpu_bytes"] in ([first * MIB, last * MIB], [first * MIB, second * MIB])


def test_nothing_that_answers_means_no_gpus(container: Container) -> None:
    place_tool(container, "#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not communicate.'\nexit 9\n")
    outcome = container.run("import os; print('GPUS', os.environ['SM_NUM_GPUS'])")
    assert "GPUS 0\n" in outcome.stdout
    assert outcome.report["gpus"] == []
