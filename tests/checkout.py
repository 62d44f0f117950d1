"""A copy of the checkout to run Terraform in, which writes lock files beside the code."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from sagefit.paths import ROOT


def copy_tree(tree: Path) -> None:
    """Copy what Git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (source := ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, tree / name)
