"""CUDA of the image on a host whose driver is older.

NVIDIA's libraries for this case lie in the image. AWS's images put them first in their entrypoint, which the launcher
takes the place of. Paths, and that the driver is strictly older: aws/deep-learning-containers, start_cuda_compat.sh.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

COMPAT = Path("/usr/local/cuda/compat")
DRIVER = Path("/proc/driver/nvidia/version")
_NAME = "LD_LIBRARY_PATH"
# "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 ...", or "Open Kernel Module for x86_64".
_KERNEL_MODULE = re.compile(r"^NVRM version:.*?\s(\d+(?:\.\d+)+)\s", re.MULTILINE)
_LIBRARY = re.compile(r"libcuda\.so\.(\d+(?:\.\d+)+)$")


def variables(environment: Mapping[str, str], compat: Path = COMPAT, driver: Path = DRIVER) -> dict[str, str]:
    """What a script's environment needs; empty without a GPU, without such libraries, and on a driver new enough."""
    try:
        has = _KERNEL_MODULE.search(driver.read_text(encoding="utf-8", errors="replace"))
        wants = _LIBRARY.search(os.readlink(compat / "libcuda.so.1"))  # noqa: PTH115 (Path.readlink: Python 3.9)
    except OSError:
        return {}
    if not has or not wants or _numbers(has[1]) >= _numbers(wants[1]):
        return {}
    return {_NAME: os.pathsep.join(filter(None, [str(compat), environment.get(_NAME)]))}


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
