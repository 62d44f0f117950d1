"""Write the lock files of the environments that stand in for images anew: ``python/sagefit/cloud/images/*.lock``.

``make lock`` runs it with uv. What it reads is written by hand:

``NAME.in``
    What an image brings. Lines that begin with ``--`` are options of pip, and go into the lock as they are.
``NAME-build.in``
    What building a package of NAME takes, where it has no wheel.
``pytorch-cpu.lock``
    PyTorch's builds for the CPU. They are in an index of their own, which says the digests too
    (https://download.pytorch.org/whl/cpu/torch/); one that is not listed is not installed.

PyTorch's usual build for Linux has CUDA. It and what it alone takes, 3 GB, are in a lock of their own
(``pytorch-cuda.lock``), so that nobody loads them who has the build for the CPU.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sagefit.cloud.images import LISTS, ON

#: PyTorch, and what its build with CUDA takes besides.
CUDA = re.compile(r"torch=|triton=|nvidia-|cuda-")


def main() -> None:
    """Write the locks of all lists; the arguments are the command that compiles one."""
    compiler = sys.argv[1:]
    for asked in sorted(LISTS.glob("*.in"), key=lambda path: path.stem in ON):
        write(asked, compiler)


def write(asked: Path, compiler: list[str]) -> None:
    """The lock of a list, and that of its build with CUDA where it has one."""
    lock, cuda = asked.with_suffix(".lock"), asked.with_name(f"{asked.stem}-cuda.lock")
    below = (
        [path for path in sorted(LISTS.glob(f"{ON[asked.stem]}*.lock")) if "-cpu" not in path.stem]
        if asked.stem in ON
        else []
    )
    known = LISTS / "known.txt"  # versions stay, unless they are to be upgraded
    known.write_text(
        "".join(path.read_text(encoding="utf-8") for path in (lock, cuda) if path.exists()), encoding="utf-8"
    )
    constraints = [word for path in below for word in ("--constraints", str(path))]
    try:
        subprocess.run([*compiler, str(asked), *constraints, "--output-file", str(known)], check=True)
        found = packages(known)
    finally:
        known.unlink()
    there = {name(row) for path in below for row in packages(path)}
    found = [row for row in found if name(row) not in there]
    options = [line + "\n" for line in asked.read_text(encoding="utf-8").splitlines() if line.startswith("--")]
    lock.write_text("".join([*options, *(row for row in found if not CUDA.match(row))]), encoding="utf-8")
    if rows := [row for row in found if CUDA.match(row)]:
        cuda.write_text("".join(rows), encoding="utf-8")


def packages(lock: Path) -> list[str]:
    """The entries of a lock file: a line with name and version, and a line for each digest."""
    return re.findall(r"^[\w.-]+==.*(?:\n    .*)+\n", lock.read_text(encoding="utf-8"), re.MULTILINE)


def name(row: str) -> str:
    """The package that an entry is of."""
    return row.split("==", 1)[0]


if __name__ == "__main__":
    main()
