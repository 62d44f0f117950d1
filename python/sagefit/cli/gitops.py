"""The loop around a pull request: plans for a review, their apply, and the command ``comment``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from sagefit.cli.shared import target
from sagefit.console import command, err, out, print_error
from sagefit.errors import BLOCKED, DONE, FAILED, SagefitError
from sagefit.gitops import bundle
from sagefit.gitops.apply import apply_ready, apply_reviewed, reviewed_keys
from sagefit.gitops.changed import changed
from sagefit.gitops.comment import entries, post
from sagefit.gitops.git import Repository
from sagefit.gitops.hosts import from_environment
from sagefit.gitops.parallel import (
    SUMMARY,
    Outcome,
    clear,
    default_parallel,
    exit_code,
    plan_all,
    summarise,
    unreadable,
)
from sagefit.gitops.stacks import stacks_in
from sagefit.job import load_job
from sagefit.paths import display

app = typer.Typer()


@dataclass(frozen=True)
class Choice:
    """What to plan: one job, one stack by its key, what differs from ``base``, or everything."""

    job: str | None
    stack: str | None
    changed: bool
    every: bool
    base: str | None


def plan_for_review(
    choice: Choice, folder: Path | None, *, parallel: int | None, hours: float, no_changes: bool
) -> None:
    """Plan into ``folder``, several stacks at once; prints what each plan does."""
    if folder is None:
        raise SagefitError("plan: --out DIR is missing", hint="it is where plans for a review go")
    if choice.changed and choice.base is None:
        raise SagefitError("plan --changed: --base REF is missing", hint="name what is merged into: --base origin/main")
    if choice.job or choice.stack:
        job, where = load_job(choice.job) if choice.job else None, target()
        what = bundle.of_job(job, where) if job else bundle.ready(choice.stack or "", where, choice.base)
        record = bundle.plan_into(what, where, folder, base=choice.base, lifetime=timedelta(hours=hours))
        outcomes = [Outcome(record.stack, record, BLOCKED if record.blocked else DONE)]
    else:
        target()  # a cloud that does not run is said once
        keys, base, broken = _chosen(choice)
        clear(folder)
        with err.status("planning") as status:

            def tell(outcome: Outcome, left: list[str]) -> None:
                err.print(f"{outcome.key}: {outcome.summary}", markup=False, soft_wrap=True)
                status.update(f"planning: {len(left)} to go")

            many = parallel or default_parallel()
            outcomes = plan_all(keys, folder, base=base, parallel=many, hours=hours, tell=tell)
        outcomes += unreadable(folder, broken)
    code = exit_code(outcomes)
    summarise(folder, outcomes)
    for outcome in outcomes:
        out.print(f"{outcome.key:<40} {outcome.summary}", markup=False, soft_wrap=True)
    for outcome in outcomes:
        if outcome.error:
            err.print(f"{outcome.key}: {outcome.error.rstrip()}", markup=False, soft_wrap=True, style="red")
    if any(outcome.record for outcome in outcomes):
        err.print(f"plans are in {display(folder)}; review them, then: {command('apply', '--reviewed', str(folder))}")
    drift = [outcome.key for outcome in outcomes if outcome.record and not outcome.record.is_empty]
    if no_changes and drift and code == DONE:
        raise SagefitError(f"not as the files say: {', '.join(drift)}", hint="see the plans", exit_code=FAILED)
    if code != DONE:
        raise typer.Exit(code)


def _chosen(choice: Choice) -> tuple[list[str], str | None, list[tuple[str, SagefitError]]]:
    """Keys of the stacks, the commit that deleted ones are read from, and the files that could not be read."""
    if choice.every:
        stacks, broken = stacks_in()
        errors = [(display(file.path), file.error) for file in broken]
        found, base = list(stacks), choice.base
    else:
        report = changed(choice.base or "")
        errors = list(report.broken)
        found, base = [touched.key for touched in report.touched], report.base
    return found, base, errors


def apply_reviewed_plans(job: str | None, folder: Path, *, replan: bool, approved: Collection[str]) -> None:
    """Apply the reviewed plan of ``job``, or all of ``folder``: platforms first, and no job of one that failed.

    ``approved``: findings that block a plan, as ``RULE:ADDRESS``, which somebody has decided to accept.
    """
    loaded, where = load_job(job) if job else None, target()
    if loaded:
        did = apply_ready(bundle.of_job(loaded, where), folder, where, replan=replan, approved=approved)
        err.print(f"{loaded.name} {'applied' if did else 'is up to date'}", markup=False)
        return
    keys = reviewed_keys(folder)
    if not keys and (folder / SUMMARY).exists():
        err.print("nothing was planned, so there is nothing to apply")
    elif not keys:
        raise SagefitError(f"no reviewed plan in {display(folder)}", hint="make some: sagefit plan --changed --out DIR")
    failed: dict[str, int] = {}
    for key in keys:
        platform = f"{key.partition('/')[0]}/platform"
        if platform in failed:
            failed[key] = failed[platform]
            err.print(f"{key}: left alone, for {platform} was not applied", markup=False, soft_wrap=True)
            continue
        try:
            did = apply_reviewed(key, folder, where, replan=replan, approved=approved)
            err.print(f"{key}: {'applied' if did else 'nothing to do'}", markup=False)
        except SagefitError as error:
            print_error(error)
            failed[key] = error.exit_code
    codes = set(failed.values())
    if codes:
        raise typer.Exit(codes.pop() if len(codes) == 1 else FAILED)


@app.command("comment")
def comment_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `plan --out DIR` planned, with its pages.")],
    number: Annotated[int | None, typer.Option("--number", help="The pull request; else that of the pipeline.")] = None,
    sha: Annotated[str | None, typer.Option("--sha", help="The commit planned; default: the one here.")] = None,
    author: Annotated[
        str | None, typer.Option("--author", help="Whose comments are ours; default: that of the pipeline's token.")
    ] = None,
) -> None:
    """Keep one comment for each stack on the pull request. The token comes from GITHUB_TOKEN or GITLAB_TOKEN."""
    what = entries(folder, sha or Repository().commit("HEAD"))
    host, run = from_environment(number, author)
    for stack, done in post(host, what, run).items():
        err.print(f"{stack}: {done}", markup=False, soft_wrap=True)
