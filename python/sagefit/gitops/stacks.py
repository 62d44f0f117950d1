"""The stacks of a checkout, and the files each is made from.

A stack has a Terraform state of its own: a platform, or a job. `sagefit changed` and the digest of the tree that binds
an apply use the same list of files, so a file that matters to one matters to the other.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.job.load import JobNames, job_files
from sagefit.job.memory_model import Memory
from sagefit.job.pinned import pin_path
from sagefit.job.source import read
from sagefit.memory.peaks import path_of as peaks_of
from sagefit.memory.trace.store import folder as trace_of
from sagefit.paths import JOB_ROOT, JOBS, PLATFORMS, ROOT

DEFAULT_PLATFORM = "dev"  # the one that needs no variables

# The subpackages that decide the content of a job's tfvars; the others only show, plan or run it.
_RENDERING = ("catalog", "job", "memory", "planning")
_ROOT, _MODULE, _VERSIONS = "root", "module", "versions of Terraform and the provider"
_OURS, _PACKAGES = "rendering", "packages that the rendering uses"
CODE = frozenset({_ROOT, _MODULE, _VERSIONS, _OURS, _PACKAGES})
"""The roles of inputs that are code, and run when a stack is planned; all others are data."""

_MODULE_CALL = re.compile(r'(?m)^\s*source\s*=\s*"(\.{1,2}/[^"]*)"')
# The files that Terraform reads in a root, including a team's backend and variables that Terraform loads automatically.
_ROOT_FILES = (".tf", ".tf.json", ".auto.tfvars", ".auto.tfvars.json", "terraform.tfvars")
_NOT_READ = {"__pycache__", "tests", ".terraform", ".terraform.lock.hcl"}


@dataclass(frozen=True)
class Input:
    """A file or folder that a stack is made from, and its role in the stack.

    In a folder with ``endings`` only its direct files with such an ending count. In Sagefit's own code (``ours``) tests
    and pages do not count.
    """

    path: Path
    what: str
    ours: bool = False
    endings: tuple[str, ...] = ()

    def holds(self, path: Path) -> bool:
        """Whether ``path``, at or below this input, belongs to it. The file need not exist any more."""
        if self.endings:
            return path.parent == self.path and path.name.endswith(self.endings)
        return not self._skips(path)

    def files(self) -> list[Path]:
        """The files there now, sorted."""
        if self.endings:
            found = (path for path in self.path.iterdir() if path.name.endswith(self.endings))
        else:
            inside = self.path.rglob("*") if self.path.is_dir() else [self.path]
            found = (path for path in inside if not self._skips(path))
        return sorted(path for path in found if path.is_file())

    def _skips(self, path: Path) -> bool:
        inside = path.parts[len(self.path.parts) :]
        if not self.ours:
            return "__pycache__" in inside
        return bool(_NOT_READ.intersection(inside)) or path.suffix == ".md"


@dataclass(frozen=True)
class Stack:
    """A platform or a job. ``job`` is None for a platform, and for a job that is gone."""

    key: str
    platform: str
    name: str
    source: Path
    job: Job | None = field(default=None, compare=False, repr=False)

    @property
    def is_platform(self) -> bool:
        """Whether it is a platform rather than a job."""
        return self.key.endswith("/platform")

    @property
    def order(self) -> tuple[bool, str]:
        """Platforms first, for jobs read what they publish."""
        return not self.is_platform, self.key


@dataclass(frozen=True)
class Broken:
    """A job file that cannot be read, and why."""

    path: Path
    error: SagefitError


def platform_stack(name: str, folder: Path = PLATFORMS) -> Stack:
    """The stack of a platform."""
    return Stack(f"{name}/platform", name, name, folder / f"{name}.tfvars")


def job_stack(job: Job) -> Stack:
    """The stack of a job."""
    return Stack(f"{job.platform}/jobs/{job.name}", job.platform, job.name, job.path, job)


def stacks_in(root: Path = ROOT) -> tuple[dict[str, Stack], list[Broken]]:
    """The stacks of a tree by key: its platforms and the jobs of ``jobs/``; and the job files that are no jobs."""
    platforms = root / PLATFORMS.relative_to(ROOT)
    names = {DEFAULT_PLATFORM, *(path.stem for path in platforms.glob("*.tfvars"))}
    found = [platform_stack(name, platforms) for name in names]
    broken = []
    known = NamesHere()
    for path in job_files(root / JOBS.relative_to(ROOT)):
        try:
            found.append(job_stack(load_job(str(path), known)))
        except SagefitError as error:
            broken.append(Broken(path, error))
    return {stack.key: stack for stack in sorted(found, key=lambda stack: stack.order)}, broken


def keys_in(root: Path) -> dict[str, Path]:
    """The stacks of an earlier tree by key, with their files. A file that could not be read gives no stack."""
    platforms = root / PLATFORMS.relative_to(ROOT)
    found = {f"{path.stem}/platform": path for path in platforms.glob("*.tfvars")}
    for path in job_files(root / JOBS.relative_to(ROOT)):
        try:
            data, _ = read(path)
        except SagefitError:
            continue
        found[f"{data.get('platform')}/jobs/{data.get('name', path.stem)}"] = path
    return found


def inputs(stack: Stack, root: Path = ROOT) -> list[Input]:
    """What a stack of the tree at ``root`` is made from, the nearest to it first."""
    terraform = root if stack.is_platform else root / JOB_ROOT.relative_to(ROOT)
    package = root / "python" / "sagefit"
    shared = [
        Input(terraform, _ROOT, endings=_ROOT_FILES),
        *(Input(module, _MODULE, ours=True) for module in _modules(terraform)),
        Input(package / "toolchain.py", _VERSIONS),
    ]
    if stack.is_platform:
        return [Input(stack.source, "variables of the platform"), *shared]
    return [
        *(_of_job(stack.job) if stack.job else [Input(stack.source, "job file")]),
        *shared,
        *(Input(package / room, _OURS, ours=True) for room in _RENDERING),
        Input(root / "requirements.lock", _PACKAGES),
    ]


def _of_job(job: Job) -> list[Input]:
    found = [Input(job.path, "job file"), Input(job.tfvars, "rendered file")]
    found += [Input(upload.path, upload.what) for upload in job.uploads]
    if isinstance(job.memory, Memory) and isinstance(job.memory.model, str):
        model = job.local(job.memory.model)
        if model.exists() or model.suffix == ".json":
            found.append(Input(model / "config.json" if model.is_dir() else model, "configuration of the model"))
    if job.image.build is not None:
        found.append(Input(pin_path(job), "pinned image"))
        found.append(Input(job.local(job.image.build), "sources of the image"))
    return [*found, Input(trace_of(job), "trace"), Input(peaks_of(job), "measured peaks")]


def _modules(root: Path) -> list[Path]:
    """The folders of the modules that a root calls, and those that they call."""
    found: dict[Path, None] = {}
    waiting = [root]
    while waiting:
        folder = waiting.pop(0)
        for file in sorted(folder.glob("*.tf")):
            for source in _MODULE_CALL.findall(file.read_text(encoding="utf-8")):
                module = (folder / source).resolve()
                if module not in found:
                    found[module] = None
                    waiting.append(module)
    return sorted(found)


class NamesHere(JobNames):
    """Names for jobs of an earlier tree, which may repeat names of jobs in ``jobs/``."""

    def twin(self, job: Job) -> Path | None:
        """Another job file of the same name beside this one."""
        same = self._named(job.path.parent, job.name)
        return next((path for path in sorted(same) if path.resolve() != job.path), None)


def tree_digest(stack: Stack, top: Path) -> str:
    """A digest of every file that ``stack`` is made from: the same in each checkout of the same content."""
    digest = hashlib.sha256()
    seen = set()
    for item in inputs(stack):
        for path in item.files():
            if path not in seen:
                seen.add(path)
                digest.update(
                    f"{os.path.relpath(path, top)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode()
                )
    return digest.hexdigest()
