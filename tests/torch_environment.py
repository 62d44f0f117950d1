"""A Python with torch, for the tests that really trace: built once from pinned versions, kept below ``.sagefit``.

``SAGEFIT_TRACE_PYTHON`` names one that is there already. Which build of torch is installed (for the CPU only, or with
CUDA) is up to pip's configuration; the tests need no GPU.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import venv
from pathlib import Path

from sagefit.paths import ROOT

_REQUIREMENTS = Path(__file__).parent / "memory" / "trace-requirements.txt"


def torch_python() -> str:
    """Path of the interpreter. Processes that ask at the same time wait for the one that builds."""
    named = os.environ.get("SAGEFIT_TRACE_PYTHON")
    if named:
        return named
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:16]
    folder = ROOT / ".sagefit" / f"torch-{digest}"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            venv.EnvBuilder(symlinks=True, with_pip=True, clear=True).create(folder)
            command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
            subprocess.run([*command, "--only-binary", ":all:", "-r", str(_REQUIREMENTS)], check=True)
            (folder / ".complete").touch()
    return str(folder / "bin" / "python")
