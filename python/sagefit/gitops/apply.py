"""Apply what was reviewed, and nothing else.

A problem of the plan itself (edited, of another stack, for another account) ends the apply, and so does an approval
that has expired. What only changed around it (another tree, state or version) allows a new plan. If the new plan does
the same as the reviewed one, it is applied instead.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from sagefit import deploy, toolchain
from sagefit.console import command, err
from sagefit.errors import REFUSED, SagefitError
from sagefit.gitops import binding, bundle
from sagefit.gitops.binding import PLAN, RECORD, Record, State, Tools
from sagefit.gitops.bundle import Ready
from sagefit.gitops.normalised import difference
from sagefit.paths import display, home
from sagefit.planning import JobPlan
from sagefit.platform import load_platform
from sagefit.reviewing import TUNING_FILE
from sagefit.taken import may_take
from sagefit.target import Target
from sagefit.terraform import Plan, Terraform
from sagefit.version import __version__


@dataclass(frozen=True)
class Refusal:
    """A condition that no longer holds. A new plan can replace the reviewed one only if ``stale`` is set."""

    message: str
    stale: bool = True


def reviewed_keys(out: Path) -> list[str]:
    """The stacks with a record in ``out``, platforms first."""
    keys = (path.parent.relative_to(out).as_posix() for path in out.rglob(RECORD))
    return sorted(keys, key=lambda key: (not key.endswith("/platform"), key))


def apply_reviewed(
    key: str, out: Path, target: Target, *, replan: bool = False, approved: Collection[str] = ()
) -> bool:
    """Apply the plan of a stack that was reviewed; returns whether there was anything to do.

    Raises SagefitError (exit code 4) when the plan is not the reviewed one, is out of date, or is blocked by a finding
    that is not in ``approved`` (``RULE:ADDRESS``). With ``replan``, a plan that is out of date raises only if a new
    plan does something else.
    """
    record = Record.load(bundle.folder_of(out, key))
    what = bundle.ready(key, target, record.origin.base)
    return apply_ready(what, out, target, replan=replan, approved=approved)


def apply_ready(
    what: Ready, out: Path, target: Target, *, replan: bool = False, approved: Collection[str] = ()
) -> bool:
    """As `apply_reviewed`, for a stack that was looked up."""
    with what.terraform.held():
        return _apply(what, out, target, replan=replan, approved=approved)


def _apply(what: Ready, out: Path, target: Target, *, replan: bool, approved: Collection[str]) -> bool:
    folder = bundle.folder_of(out, what.stack.key)
    record = Record.load(folder)
    refusals = list(_refusals(what, record, folder, target))
    if any(not refusal.stale for refusal in refusals) or (refusals and not replan):
        raise _refused(what, record, folder, refusals)
    _gate(record, approved)
    with tempfile.TemporaryDirectory(prefix="reviewed-", dir=_scratch()) as scratch:
        if refusals:
            for refusal in refusals:
                err.print(f"{what.stack.key}: {refusal.message}; planning again", markup=False, soft_wrap=True)
            record = _replanned(what, record, Path(scratch), target)
            _gate(record, approved)
            folder = bundle.folder_of(Path(scratch), what.stack.key)
        if record.is_empty:
            return False
        copy = Path(scratch) / PLAN  # Terraform's door removes a plan that was applied
        shutil.copyfile(folder / PLAN, copy)
        _guard(what, record, Plan(copy))
        what.terraform.apply(Plan(copy))
    return True


def _gate(record: Record, approved: Collection[str]) -> None:
    """Refuse a plan with a finding that blocks it and that nobody has approved by name."""
    if record.is_empty:
        return
    for finding in (blocking := set(record.blocked)) & set(approved):
        err.print(f"{record.stack}: approved: {finding}", markup=False, soft_wrap=True)
    if left := sorted(blocking - set(approved)):
        lines = "\n".join(f"  {finding}" for finding in left)
        raise SagefitError(
            f"{record.stack}: blocked by fail_on in {TUNING_FILE}:\n{lines}",
            hint="change the plan, or let somebody who may decide it approve each: --approve RULE:ADDRESS",
            exit_code=REFUSED,
        )


def _refusals(what: Ready, record: Record, folder: Path, target: Target) -> Iterator[Refusal]:
    """All reasons against the plan. Checks that call a service come last; a foreign or edited plan skips them."""
    key, plan = what.stack.key, folder / PLAN
    if record.stack != key:
        yield Refusal(f"foreign plan: it is of {record.stack}", stale=False)
        return
    here = bundle.place(target)
    if record.place != here:
        yield Refusal(f"foreign plan: it was made for {record.place}, and this is {here}", stale=False)
        return
    if record.destroy != what.destroy:
        was, is_ = ("gone", "here") if record.destroy else ("here", "gone")
        yield Refusal(f"the stack was {was} when it was reviewed, and is {is_} now", stale=False)
        return
    if not plan.exists():
        yield Refusal(f"the record came without its plan ({PLAN})")
    elif binding.file_digest(plan) != record.plan:
        yield Refusal(f"edited plan: {display(plan)} is not the file that was reviewed", stale=False)
        return
    if record.has_expired():
        yield Refusal(f"expired plan: its approval was good until {record.expires}", stale=False)
    now = bundle.origin(what.stack, None)
    if now.tree != record.origin.tree:
        yield Refusal(f"other tree: files of {key} are not those of commit {record.origin.head[:12]} that were planned")
    if now.platform_document != record.origin.platform_document:
        yield Refusal(f"other platform: {what.stack.platform} publishes something else since the plan was made")
    state, tools = _state(what.terraform), _tools(what.terraform, record)
    if state != record.state:
        yield Refusal(f"other state: the plan is for {_named(record.state)}, and the state has {_named(state)}")
    if tools != record.tools:
        yield Refusal(f"other version: planned with {record.tools}, and this is {tools}")


def _refused(what: Ready, record: Record, folder: Path, refusals: list[Refusal]) -> SagefitError:
    where = display(folder)
    text = "\n".join(f"{what.stack.key}: {refusal.message}" for refusal in refusals)
    if any(not refusal.stale for refusal in refusals):
        hint = f"plan again and have it reviewed; nothing of {where} was applied"
    else:
        hint = (
            "--replan plans again, and goes on if that does the same as what was reviewed; "
            f"or have a new plan reviewed: {command('plan', '--stack', record.stack, '--out', 'DIR')}"
        )
    return SagefitError(text, hint=hint, exit_code=REFUSED)


def _replanned(what: Ready, record: Record, out: Path, target: Target) -> Record:
    """A plan made now, if it does what was reviewed, or if there is nothing left to do."""
    new = bundle.plan_into(what, target, out, base=record.origin.base)
    told = difference(record.content, new.content)
    if not told or new.is_empty:
        return new
    kept = replanned()
    shutil.rmtree(bundle.folder_of(kept, what.stack.key), ignore_errors=True)
    shutil.copytree(bundle.folder_of(out, what.stack.key), bundle.folder_of(kept, what.stack.key))
    lines = "\n".join(f"  {line}" for line in told)
    raise SagefitError(
        f"{what.stack.key}: a plan made now does not do what was reviewed:\n{lines}",
        hint=f"have the new plan reviewed: it lies in {display(kept)}, and --reviewed takes that folder",
        exit_code=REFUSED,
    )


def replanned() -> Path:
    """Where the new plan of a stack lies whose apply was refused because it does something else."""
    return home() / "gitops" / "replanned"


def _guard(what: Ready, record: Record, plan: Plan) -> None:
    """Check before each apply: runs that need what ``plan`` takes; of a job the platform's limits and its price too."""
    takes = may_take((address, change["actions"]) for address, change in record.content.changes.items())
    if what.stack.is_platform:
        if takes and not what.destroy and (remark := deploy.platform_remark(what.stack.platform, what.terraform, plan)):
            err.print(f"look again: {remark}", markup=False, soft_wrap=True)
        return
    job = what.stack.job or what.job
    assert job is not None  # noqa: S101 - a stack that is no platform is a job's
    if not what.destroy:
        deploy.check(JobPlan(job), load_platform(job.platform))
    if takes:
        deploy.refuse_under_runs(job, what.terraform, plan)


def _state(terraform: Terraform) -> State:
    """Lineage and serial of the state as it is now."""
    state = terraform.state()
    return State(state["lineage"], state["serial"])


def _tools(terraform: Terraform, record: Record) -> Tools:
    """The versions that an apply would use; providers that the plan does not name do not matter."""
    lock = terraform.root / ".terraform.lock.hcl"
    found = binding.provider_versions(lock.read_text(encoding="utf-8")) if lock.exists() else {}
    ours = {source: found.get(source, "none") for source in record.tools.providers}
    return Tools(toolchain.terraform_version(terraform.binary) or "none", ours, __version__)


def _named(state: State) -> str:
    return f"serial {state.serial} of lineage {state.lineage or 'none'}"


def _scratch() -> Path:
    folder = home() / "gitops"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
