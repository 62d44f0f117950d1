"""Plan one stack into a folder: the saved plan, its JSON, the page, and the record that binds an apply to them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import boto3

from sagefit import deploy
from sagefit.errors import SagefitError
from sagefit.gitops import binding, handover
from sagefit.gitops.binding import PAGE, PLAN, PLAN_JSON, Origin, Place, Record
from sagefit.gitops.git import Repository
from sagefit.gitops.history import runs_of
from sagefit.gitops.hosts import file_addresses
from sagefit.gitops.stacks import Broken, NamesHere, Stack, job_stack, keys_in, platform_stack, stacks_in, tree_digest
from sagefit.job import Job, load_job
from sagefit.paths import ROOT, home
from sagefit.planning import JobPlan
from sagefit.platform import parameter
from sagefit.reviewing import (
    TUNING_FILE,
    Console,
    Document,
    Links,
    Runs,
    Tuning,
    Written,
    brief,
    console,
    load_tuning,
    markdown,
    read_document,
    read_tuning,
    review,
)
from sagefit.reviewing import Origin as Reviewed
from sagefit.target import Target
from sagefit.terraform import Plan, Terraform
from sagefit.version import __version__

LIFETIME = timedelta(hours=24)
_RULES = ROOT.resolve() / "docs" / "review.md"


@dataclass(frozen=True)
class Ready:
    """A stack with the Terraform that plans and applies it. With ``destroy``, ``job`` is the job that is deleted."""

    stack: Stack
    terraform: Terraform
    destroy: bool = False
    job: Job | None = None


def folder_of(out: Path, key: str) -> Path:
    """Where the plan of a stack lies among those of ``out``."""
    return out / key


def ready(key: str, target: Target, base: str | None = None) -> Ready:
    """The stack ``key`` of the files here; a stack that is gone is destroyed, as its files were at ``base``.

    Raises SagefitError when there is no such stack here or at ``base``.
    """
    found, broken = stacks_in()
    stack = found.get(key)
    if stack and stack.job:
        return of_job(stack.job, target)
    if stack:
        return Ready(stack, deploy.platform_terraform(stack.name, target))
    name = key.rpartition("/")[2]
    for file in broken:
        if file.path.stem == name:
            raise file.error
    if base is None:
        raise SagefitError(
            f"no stack {key} here",
            hint="stacks are PLATFORM/platform and PLATFORM/jobs/JOB; --base REF finds a deleted one",
        )
    return deleted(key, target, base, broken)


def of_job(job: Job, target: Target) -> Ready:
    """The stack of a job, wherever its file lies."""
    return Ready(job_stack(job), deploy.job_terraform(job, target))


def deleted(key: str, target: Target, base: str, broken: Collection[Broken] = ()) -> Ready:
    """The stack ``key`` as its files were at ``base``, to be destroyed; ``broken`` are files here that cannot be read.

    Raises SagefitError when there was no such stack, or its file is one of those.
    """
    repository = Repository()
    top = home() / "gitops" / "base" / repository.commit(base)
    if not top.exists():
        partial = top.with_name(f".{top.name}.{os.getpid()}")
        partial.mkdir(parents=True)
        repository.extract(top.name, partial)
        try:
            partial.rename(top)
        except OSError:  # another process was first
            shutil.rmtree(partial)
    root = top / ROOT.relative_to(repository.top)
    earlier = keys_in(root)
    if key not in earlier:
        raise SagefitError(f"no stack {key}, here or at {top.name[:12]}", hint="see: sagefit changed --base REF")
    source = ROOT / earlier[key].relative_to(root)
    for file in broken:
        if file.path == source:  # the file is here, but cannot be read
            raise file.error
    if key.endswith("/platform"):
        stack = platform_stack(earlier[key].stem)
        return Ready(stack, deploy.platform_terraform(stack.name, target, variables=earlier[key]), destroy=True)
    job = load_job(str(earlier[key]), NamesHere(), uploads=False)
    job.tfvars.unlink(missing_ok=True)  # it is rendered again, with paths into the earlier files
    gone = Stack(key, job.platform, job.name, source)
    return Ready(gone, deploy.job_terraform(job, target), destroy=True, job=job)


def plan_into(
    what: Ready, target: Target, out: Path, *, base: str | None = None, lifetime: timedelta = LIFETIME
) -> Record:
    """Plan, and write plan, JSON and record into the stack's folder of ``out``. Nothing is created in the cloud."""
    job = what.stack.job or what.job
    destroy = what.destroy
    with what.terraform.held():
        if job:
            plan = deploy.plan_job(JobPlan(job), target, destroy=destroy).plan
        else:
            plan = what.terraform.plan(destroy=destroy)
        return keep(what, target, plan, out, base=base, lifetime=lifetime)


def keep(
    what: Ready, target: Target, plan: Plan, out: Path, *, base: str | None = None, lifetime: timedelta = LIFETIME
) -> Record:
    """Write what binds an apply to ``plan`` into the stack's folder of ``out``."""
    folder = folder_of(out, what.stack.key)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    shutil.copyfile(plan.path, folder / PLAN)
    (folder / PLAN).chmod(0o600)
    binding.private(folder / PLAN_JSON, what.terraform.show_json(plan))
    record = binding.make(
        what.stack.key,
        folder,
        place=place(target),
        origin=origin(what.stack, base),
        sagefit=__version__,
        destroy=what.destroy,
        lifetime=lifetime,
    )
    written = _written(what.stack, record.origin.base) if record.origin.base and not what.destroy else None
    runs = runs_of(what.stack, stacks_in()[0].values())
    record = judged(record, read_document(folder / PLAN_JSON), folder, written=written, runs=runs)
    handover.hand_over(folder, record, runs)
    return record


def judged(
    record: Record,
    document: Document,
    folder: Path,
    job_plan: JobPlan | None = None,
    written: Written | None = None,
    runs: Runs | None = None,
) -> Record:
    """Review a plan by the settings at its base; write its page and its record, sealed, into ``folder``.

    ``job_plan``: of the job's file, where that is not in ``jobs/``. ``written``: what the change edits in that file.
    ``runs``: what is said of its runs.
    """
    state = record.state
    about = Reviewed(record.stack, record.origin.head, record.plan, state.lineage, state.serial)
    settings, origin = settings_of(record.origin.base), record.origin
    links = links_of(origin.head, origin.base)
    found = review(document, origin=about, tuning=settings, job_plan=job_plan, links=links)
    page = markdown(found, written=written, runs=runs, console=_console(record))
    blocking = found.blocking(found.tuning.fail_on) if found.tuning.fail_on else []
    blocked = sorted({f"{finding.rule}:{finding.address}" for finding in blocking})
    record = record.judged(page, blocked, brief(found, runs))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    record.save(folder)
    binding.private(folder / PAGE, page)
    return record


def links_of(head: str, base: str | None) -> Links:
    """Where the host of this pipeline shows the files of ``head``, and the rules as ``base`` explains them."""
    files = file_addresses(head)
    if not files:
        return Links()
    repository = Repository()
    rules = _RULES.relative_to(repository.top).as_posix()
    at = base or head
    explained = repository.file(at, rules) is not None
    return Links(files, f"{file_addresses(at)}{rules}" if explained else "")


def _console(record: Record) -> Console | None:
    platform, kind, job = (*record.stack.split("/"), "")[:3]
    if record.place.cloud != "aws" or kind != "jobs":
        return None
    return console(record.place.region, record.place.account, f"sagefit-{platform}-{job}")


def _written(stack: Stack, base: str) -> Written | None:
    """What the files here edit in the file that a stack is written in."""
    repository = Repository()
    if not stack.source.is_file() or not stack.source.resolve().is_relative_to(repository.top):
        return None
    path = stack.source.resolve().relative_to(repository.top).as_posix()
    return Written(path, repository.file(base, path), stack.source.read_bytes())


def settings_of(base: str | None, root: Path = ROOT) -> Tuning:
    """The review settings at the base of a change, because a change must not accept its own findings."""
    if base is None:
        return load_tuning()
    repository, where = Repository(root), root.resolve() / TUNING_FILE
    text = repository.file(base, where.relative_to(repository.top).as_posix())
    return Tuning() if text is None else read_tuning(text, where)


def place(target: Target) -> Place:
    """The account and region that this process talks to."""
    sts = boto3.client("sts")
    return Place(target.name, sts.get_caller_identity()["Account"], sts.meta.region_name)


def origin(stack: Stack, base: str | None) -> Origin:
    """The commits and files of a plan that is made now."""
    repository = Repository()
    return Origin(
        head=repository.commit("HEAD"),
        base=repository.commit(base) if base else None,
        dirty=repository.is_dirty(),
        tree=tree_digest(stack, repository.top),
        platform_document=platform_document(stack),
    )


def platform_document(stack: Stack) -> str | None:
    """The digest of what the platform publishes, which a job's plan reads; None for a platform."""
    if stack.is_platform:
        return None
    answer = boto3.client("ssm").get_parameter(Name=parameter(stack.platform))
    return hashlib.sha256(answer["Parameter"]["Value"].encode()).hexdigest()
