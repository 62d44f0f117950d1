"""Which folders of this machine a job may upload from: its project, and those that its platform names."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.paths import JOBS, PLATFORMS, ROOT, display, home

KERNEL = tuple(Path(folder) for folder in ("/proc", "/dev", "/sys"))
"""Files there are no data: reading one may never end, or may show data of other processes."""

MARK = ".sagefit-tree"
"""A file at the top of a tree that was taken out of a repository, where a checkout has ``.git``."""

FIELD = "upload_folders"
"""The variable of a platform that names further folders."""

_DECLARED = f'variable "{FIELD}" {{\n  type    = set(string)\n  default = []\n}}\n'


def project_of(job_file: Path) -> Path:
    """The Git checkout around a job file; else its project: the folder around ``jobs/``, or its own folder."""
    for folder in job_file.parents:
        if (folder / ".git").exists() or (folder / MARK).exists():
            return folder
    if job_file.is_relative_to(ROOT):
        return ROOT
    return job_file.parent.parent if job_file.parent.name == JOBS.name else job_file.parent


def platform_file(platform: str) -> Path:
    """The variables of a platform."""
    return PLATFORMS / f"{platform}.tfvars"


def named_folders(platform: str) -> tuple[Path, ...]:
    """The folders that the variables of a platform name; none where there is no such file.

    Raises SagefitError for variables that Terraform cannot read.
    """
    path = platform_file(platform)
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else ()


def inside(path: Path, folders: tuple[Path, ...]) -> bool:
    """Whether a path without links lies in one of ``folders``, or is one."""
    return any(path.is_relative_to(folder.resolve()) for folder in folders)


@lru_cache(maxsize=16)
def _read(path: Path, _modified: int) -> tuple[Path, ...]:
    """Let Terraform itself read its language; a configuration of one variable needs no ``terraform init``."""
    from sagefit import toolchain  # few jobs come here, and it takes longer to load than to size one

    with tempfile.TemporaryDirectory(prefix="sagefit-") as folder:
        (Path(folder) / "main.tf").write_text(_DECLARED, encoding="utf-8")
        done = subprocess.run(
            [toolchain.terraform_binary(home()), "console", f"-var-file={path}"],
            input=f"jsonencode(var.{FIELD})\n",
            cwd=folder,
            env={**os.environ, "TF_DATA_DIR": folder, "TF_CLI_ARGS": "", "TF_CLI_ARGS_console": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SagefitError(
            f"{display(path)}: {FIELD} cannot be read: {done.stderr.strip()[:500]}",
            hint=f'write a list of folders, such as {FIELD} = ["/data/shared"]',
        )
    return tuple(Path(folder) for folder in json.loads(json.loads(done.stdout.strip().splitlines()[-1])))
