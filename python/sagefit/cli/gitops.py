"""The loop around a pull request: plans for a review, their apply, and the command ``comment``."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from sagefit.cli.shared import target
from sagefit.console import command, err, out, print_error
from sagefit.errors import BLOCKED, DONE, FAILED, REFUSED, SagefitError
from sagefit.gitops import bundle, ended, handover, whole
from sagefit.gitops.apply import apply_ready, apply_reviewed, reviewed_keys
from sagefit.gitops.changed import Report, changed
from sagefit.gitops.comment import post
from sagefit.gitops.ended import Ended
from sagefit.gitops.git import Repository
from sagefit.gitops.hosts import from_environment, run_address, status_name
from sagefit.gitops.overview import overview
from sagefit.gitops.parallel import (
    SUMMARY,
    Outcome,
    clear,
    default_parallel,
    exit_code,
    headline,
    plan_all,
    summarise,
    unreadable,
)
from sagefit.gitops.sealing import seal
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
        keys, base, broken, report = _chosen(choice)
        clear(folder)
        with err.status("planning") as status:

            def tell(outcome: Outcome, left: list[str]) -> None:
                err.print(f"{outcome.key}: {outcome.summary}", markup=False, soft_wrap=True)
                status.update(f"planning: {len(left)} to go")

            many = parallel or default_parallel()
            outcomes = plan_all(keys, folder, base=base, parallel=many, hours=hours, tell=tell)
        outcomes += unreadable(folder, broken)
        outcomes += _of_the_change(report, folder) if report else []
    code = _told(outcomes, folder)
    if any(outcome.record for outcome in outcomes):
        err.print(f"plans are in {display(folder)}; review them, then: {command('apply', '--reviewed', str(folder))}")
    drift = [outcome.key for outcome in outcomes if outcome.record and not outcome.record.is_empty]
    if no_changes and drift and code == DONE:
        message = f"these stacks differ from their files (drift): {', '.join(drift)}"
        raise SagefitError(message, hint=f"read the plans in {display(folder)}", exit_code=FAILED)
    if code != DONE:
        raise typer.Exit(code)


def _told(outcomes: list[Outcome], folder: Path) -> int:
    """Write and print the outcome of each stack; the exit code of all."""
    summarise(folder, outcomes)
    for outcome in outcomes:
        out.print(f"{outcome.key:<40} {outcome.summary}", markup=False, soft_wrap=True)
    for outcome in outcomes:
        if outcome.error:
            err.print(f"{outcome.key}: {outcome.error.rstrip()}", markup=False, soft_wrap=True, style="red")
    return exit_code(outcomes)


def _of_the_change(report: Report, folder: Path) -> list[Outcome]:
    """What a change alters of that which reviews it; the page says that this may have made the pages."""
    head = Repository().commit("HEAD")
    about = whole.whole_of(report, bundle.settings_of(report.base), head, bundle.links_of(head, report.base))
    if about is None:
        return []
    made_by = "The pages here were made with them: look at them from a checkout without them, too."
    whole.save(about, folder, made_by)
    return [Outcome(whole.KEY, None, about.code, said=about.summary)]


def _chosen(choice: Choice) -> tuple[list[str], str | None, list[tuple[str, SagefitError]], Report | None]:
    """Keys of the stacks, the commit that deleted ones are read from, files that could not be read; what changed."""
    if choice.every:
        stacks, broken = stacks_in()
        errors = [(display(file.path), file.error) for file in broken]
        return list(stacks), choice.base, errors, None
    report = changed(choice.base or "")
    return [touched.key for touched in report.touched], report.base, list(report.broken), report


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
    ended.forget()
    if not keys and (folder / SUMMARY).exists():
        ended.keep([])
        err.print("nothing was planned, so there is nothing to apply")
    elif not keys:
        raise SagefitError(f"no reviewed plan in {display(folder)}", hint="make some: sagefit plan --changed --out DIR")
    failed: dict[str, int] = {}
    done: list[Ended] = []
    for key in keys:
        platform = f"{key.partition('/')[0]}/platform"
        if platform in failed:
            failed[key] = failed[platform]
            done.append(Ended(key, ended.LEFT, f"{platform} was not applied"))
            ended.keep(done)
            err.print(f"{key}: left alone, for {platform} was not applied", markup=False, soft_wrap=True)
            continue
        try:
            did = apply_reviewed(key, folder, where, replan=replan, approved=approved)
            done.append(Ended(key, ended.APPLIED if did else ended.NOTHING))
            err.print(f"{key}: {done[-1].how}", markup=False)
        except SagefitError as error:
            print_error(error)
            failed[key] = error.exit_code
            done.append(Ended(key, ended.REFUSED if error.exit_code == REFUSED else ended.FAILED, str(error)))
        finally:
            ended.keep(done)
    codes = set(failed.values())
    if codes:
        raise typer.Exit(codes.pop() if len(codes) == 1 else FAILED)


@app.command("seal")
def seal_command(
    handed: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="What `plan` handed over, as the other side sent it.")
    ] = None,
    folder: Annotated[Path | None, typer.Option("--out", help="A folder for pages and records.")] = None,
    base: Annotated[str | None, typer.Option("--base", metavar="REF", help="What is merged into.")] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="REF", help="The commit that was planned.")] = None,
    expires: Annotated[float, typer.Option("--expires", min=0, help="Hours for which a plan may be applied.")] = 24,
    public: Annotated[
        bool, typer.Option("--public-key", help="Only print the public half of the review key, for the other side.")
    ] = False,
) -> None:
    """Judge and seal plans that were made elsewhere, with the review key; nothing of the change runs here.

    Exit code 5 when a finding blocks one of them.
    """
    if public:
        print(handover.public_key())
        return
    if handed is None or folder is None or base is None or head is None:
        raise SagefitError("seal: name DIR, --out, --base and --head; or --public-key")
    if folder.resolve() == handed.resolve():
        raise SagefitError("seal: --out is DIR itself", hint="name another folder: what is there is replaced")
    outcomes = seal(handed, folder, base=base, head=head, lifetime=timedelta(hours=expires))
    code = _told(outcomes, folder)
    if code != DONE:
        raise typer.Exit(code)


def _checked_region(value: str) -> str:
    if value and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", value):
        raise SagefitError(f"--region: {value!r} is no region", hint="name one of AWS, such as eu-central-1")
    return value


RegionOption = Annotated[
    str,
    typer.Option(
        "--region",
        envvar="SAGEFIT_REVIEW_REGION",
        metavar="REGION",
        callback=_checked_region,
        help="Of several pipelines, the one of this region: comments and status get its name.",
    ),
]


@app.command("comment")
def comment_command(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="What `plan --out DIR` planned, or `seal` sealed.")
    ] = None,
    number: Annotated[int | None, typer.Option("--number", help="The pull request; else that of the pipeline.")] = None,
    sha: Annotated[str | None, typer.Option("--sha", help="The commit planned; default: the one here.")] = None,
    author: Annotated[
        str | None, typer.Option("--author", help="Whose comments are ours; default: that of the pipeline's token.")
    ] = None,
    only_print: Annotated[bool, typer.Option("--print", help="Print it, whole, and ask no host.")] = False,
    applied: Annotated[
        bool, typer.Option("--applied", help="Without DIR: say how the last apply --reviewed here ended.")
    ] = False,
    region: RegionOption = "",
) -> None:
    """Keep one comment about the whole change on the pull request; or say there how it was applied.

    The token comes from GITHUB_TOKEN or GITLAB_TOKEN.
    """
    if applied is (folder is not None):
        raise SagefitError("comment: name DIR, or --applied")
    about = overview(folder, sha or Repository().commit("HEAD"), region) if folder else None
    last = [] if about else ended.load()
    if only_print:
        address = run_address()
        sys.stdout.write(about.text(address=address) if about else ended.text(last, address=address, region=region))
        return
    host, run = from_environment(number, author)
    did = post(host, about, run, run_address()) if about else ended.post(host, last, run, run_address(), region)
    err.print(f"comment: {did}", markup=False, soft_wrap=True)


@app.command("status")
def status_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `plan --out DIR` planned, or `seal` sealed.")],
    sha: Annotated[str, typer.Option("--sha", help="The commit that gets the status: the tip of the branch.")],
    number: Annotated[int | None, typer.Option("--number", help="The pull request; else that of the pipeline.")] = None,
    region: RegionOption = "",
) -> None:
    """Set the status sagefit/review of a commit: whether something blocks the change, in words."""
    passed, text = headline(folder)
    host, _ = from_environment(number)
    name = status_name(region)
    host.status(sha, passed=passed, text=text, url=run_address(), name=name)
    err.print(f"{name}: {'passed' if passed else 'failed'}: {text}", markup=False, soft_wrap=True)
