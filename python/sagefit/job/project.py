"""Which folders of this machine a job may upload from: its project, and those that its platform names."""

from __future__ import annotations

from pathlib import Path

from sagefit.paths import JOBS, PLATFORMS, ROOT

KERNEL = tuple(Path(folder) for folder in ("/proc", "/dev", "/sys"))
"""Files there are no data: reading one may never end, or may show data of other processes."""

MARK = ".sagefit-tree"
"""A file at the top of a tree that was taken out of a repository, where a checkout has ``.git``."""

FIELD = "upload_folders"
"""The variable of a platform that names further folders."""


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
    if not path.is_file():
        return ()
    from sagefit.tfvars_file import read_variables  # few jobs come here, and it takes longer to load than to size one

    hint = f'write a list of folders, such as {FIELD} = ["/data/shared"]'
    read = read_variables(path, {FIELD: ("set(string)", "[]")}, hint)
    return tuple(Path(folder) for folder in read[FIELD])


def inside(path: Path, folders: tuple[Path, ...]) -> bool:
    """Whether a path without links lies in one of ``folders``, or is one."""
    return any(path.is_relative_to(folder.resolve()) for folder in folders)
