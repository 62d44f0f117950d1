"""Look at a branch from a checkout that one trusts: nothing of the branch is run.

Job files and variables of platforms are read out of Git as data. They are planned with the Terraform and the Sagefit of
this checkout. What the branch changes of those has no part in it, and is said.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from sagefit import deploy
from sagefit.errors import SagefitError
from sagefit.gitops import bundle, whole
from sagefit.gitops.changed import Report, Touched, changed
from sagefit.gitops.git import Repository
from sagefit.gitops.stacks import CODE, Stack, stacks_in
from sagefit.gitops.whole import Whole
from sagefit.paths import PLATFORMS, ROOT, display, home
from sagefit.planning import JobPlan
from sagefit.reviewing import Document, Review, Tuning, read_origin, review
from sagefit.reviewing.rules import Severity
from sagefit.target import Target
from sagefit.terraform import Plan, Terraform


@dataclass(frozen=True)
class Seen:
    """A stack that the branch touches: its review, or why there is none.

    ``left_out`` are changed files that are code, with their part in the stack: they were not run.
    """

    key: str
    found: Review | SagefitError
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """What a branch brings to ``base``; ``here`` is the commit whose code looked."""

    report: Report
    whole: Whole | None
    here: str
    stacks: tuple[Seen, ...]


def look(head: str, base: str, target: Target, tuning: Tuning | None = None, fail_on: Severity | None = None) -> Look:
    """Review the branch ``head``; nothing is created in the cloud.

    The settings are those of ``base``, or ``tuning``; ``fail_on`` goes before what they say.

    Raises SagefitError when Git cannot tell what changed. What is wrong with one stack is said with that stack.
    """
    repository = Repository()
    commit, base = repository.commit(head), repository.commit(base)
    settings = tuning or bundle.settings_of(base)
    settings = settings.model_copy(update={"fail_on": fail_on}) if fail_on else settings
    report = changed(base, commit)
    scratch = home() / "gitops"
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="look-", dir=scratch) as folder:
        top = Path(folder).resolve() / "tree"
        top.mkdir()
        repository.extract(commit, top)
        root = top / ROOT.relative_to(repository.top)
        stacks, _ = stacks_in(root)
        plan = top.parent / "plan.tfplan"
        seen = [
            _seen(touched, stacks.get(touched.key), root, plan, target, commit, report.base, settings)
            for touched in report.touched
        ]
    seen += [Seen(file, error, ()) for file, error in report.broken]
    return Look(report, whole.whole_of(report, settings, commit), repository.commit("HEAD"), tuple(seen))


def left_out(touched: Touched) -> tuple[str, ...]:
    """The reasons for which a stack is touched that are code, and so have no part in its page."""
    return tuple(because for because in touched.because if because.rpartition(" (")[2].rstrip(")") in CODE)


def _seen(
    touched: Touched,
    stack: Stack | None,
    root: Path,
    plan: Path,
    target: Target,
    commit: str,
    base: str,
    settings: Tuning,
) -> Seen:
    code = left_out(touched)
    try:
        terraform, planned, job_plan = _planned(touched.key, stack, root, plan, target, base)
        document = Document(touched.key, terraform.show_json(planned).encode())
        origin = read_origin(planned.path, stack=touched.key, commit=commit)
        found = review(document, origin=origin, tuning=settings, job_plan=job_plan)
    except SagefitError as error:
        return Seen(touched.key, _without(error, root), code)
    return Seen(touched.key, found, code)


def _planned(
    key: str, stack: Stack | None, root: Path, plan: Path, target: Target, base: str
) -> tuple[Terraform, Plan, JobPlan | None]:
    """Plan a stack of the tree at ``root`` into ``plan``, with the roots and modules of this checkout."""
    what = bundle.deleted(key, target, base) if stack is None else None
    job = what.job if what else stack.job if stack else None
    if job:
        job_plan = JobPlan(job)
        planned = deploy.plan_job(job_plan, target, destroy=what is not None, saved_at=plan)
        return planned.terraform, planned.plan, None if what else job_plan
    folder = root / PLATFORMS.relative_to(ROOT)
    terraform = what.terraform if what else deploy.platform_terraform(key.partition("/")[0], target, folder)
    terraform.plan_path = plan
    with terraform.held():
        return terraform, terraform.plan(destroy=what is not None), None


def _without(error: SagefitError, root: Path) -> SagefitError:
    """The error with paths as the branch has them."""
    texts = [error.message, error.hint or ""]
    for place in (str(root), display(root)):
        texts = [text.replace(f"{place}/", "") for text in texts]
    return SagefitError(texts[0], hint=texts[1] or None, exit_code=error.exit_code)
