"""``sagefit review``: the page that a change is decided from."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.text import Text

from sagefit.console import err, out, print_error
from sagefit.errors import DONE, INVALID, REFUSED, SagefitError
from sagefit.planning import JobPlan, plan
from sagefit.reviewing import (
    Document,
    Review,
    Tuning,
    as_json,
    load_tuning,
    markdown,
    read_document,
    read_origin,
    review,
)
from sagefit.reviewing.policies import PolicyDiff
from sagefit.reviewing.rules import SEVERITIES

app = typer.Typer()

_FORMATS = ("markdown", "json", "terminal")


@app.command("review")
def review_command(
    plans: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PLAN.json...]", help="Plans from terraform show -json; or one JOB to plan now."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="markdown, json (one object a line) or terminal. Default: terminal on one, else markdown."
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on", help="Exit code 4 for a finding of this severity or worse: critical, high, medium, low."
        ),
    ] = None,
    tuning: Annotated[
        Path | None, typer.Option("--tuning", help="Severities and accepted findings. Default: .sagefit-review.yaml.")
    ] = None,
    policies: Annotated[bool, typer.Option("--policies", help="Scan with checkov and the policies, too.")] = False,
    plan_file: Annotated[
        Path | None,
        typer.Option("--plan-file", help="The saved plan itself, for its digest and the serial of its state."),
    ] = None,
    stack: Annotated[str, typer.Option("--stack", help="What the page calls this stack.")] = "",
    commit: Annotated[str, typer.Option("--commit", help="The commit that was planned.")] = "",
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="REF", help="Look at a branch with the code of this checkout: none of its own runs."
        ),
    ] = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REF", help="What that branch is to be merged into; its settings count.")
    ] = "HEAD",
) -> None:
    """The reviewer's page of a plan: what changes, what is dangerous, whether a job fits and what it can cost.

    Exit code 0 when the page is made, 2 when a plan cannot be read, 4 with --fail-on when something is that dangerous
    or could not be judged.
    """
    if bool(plans) is (head is not None):
        raise SagefitError("review: name plans or a JOB, or --head REF")
    if head is not None:
        if plan_file or policies or stack or commit:
            raise SagefitError("review --head: --plan-file, --policies, --stack and --commit belong to single plans")
        _branch(head, base, form, fail_on, tuning)
        return
    assert plans  # noqa: S101 - as asked above
    settings = load_tuning(tuning)
    shape = _choice("--format", form or ("terminal" if sys.stdout.isatty() else "markdown"), _FORMATS)
    gate = _choice("--fail-on", fail_on, SEVERITIES) if fail_on else settings.fail_on
    settings = settings.model_copy(update={"fail_on": gate})
    if plan_file is not None and len(plans) > 1:
        raise SagefitError("--plan-file: there are several plans", hint="review them one by one")
    code = DONE
    for reference in plans:
        try:
            with _uncollected():
                found = _review(reference, settings, plan_file, stack, commit, scan=policies)
                _print(found, shape)
        except SagefitError as error:
            if len(plans) == 1:
                raise
            print_error(error)
            code = max(code, error.exit_code)
            continue
        if gate and found.blocks(gate):
            err.print(Text(f"{reference}: findings of severity {gate} or worse, or parts that nobody could judge"))
            code = max(code, REFUSED)
    if code:
        raise typer.Exit(code)


def _branch(head: str, base: str, form: str | None, fail_on: str | None, tuning: Path | None) -> None:
    """The pages of a branch; the loop is loaded for this alone."""
    from sagefit.cli import branch

    shape = _choice("--format", form or ("terminal" if sys.stdout.isatty() else "markdown"), _FORMATS)
    gate = _choice("--fail-on", fail_on, SEVERITIES) if fail_on else None
    code = branch.show(head, base, shape, gate, load_tuning(tuning) if tuning else None, _print)
    if code:
        raise typer.Exit(code)


_Word = TypeVar("_Word", bound=str)


def _choice(option: str, given: str, allowed: Sequence[_Word]) -> _Word:
    for word in allowed:
        if word == given:
            return word
    raise SagefitError(f"{option} {given}: no such choice", hint=f"one of {', '.join(allowed)}", exit_code=INVALID)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: a plan is many small objects that all stay, and to look through them takes long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _review(reference: str, settings: Tuning, plan_file: Path | None, stack: str, commit: str, *, scan: bool) -> Review:
    job_plan = None
    if reference.endswith(".json") or (Path(reference).is_file() and not reference.endswith((".yaml", ".yml"))):
        document = read_document(Path(reference))
    else:
        document, plan_file, key, job_plan = _planned(reference)
        stack = stack or key
    return review(
        document,
        origin=read_origin(plan_file, stack=stack, commit=commit),
        tuning=settings,
        policies=_policies(document) if scan else None,
        job_plan=job_plan,
    )


def _planned(reference: str) -> tuple[Document, Path, str, JobPlan]:
    """Plan a job now, as ``sagefit plan`` does: saved, and nothing created. Also the name of its stack."""
    from sagefit import deploy
    from sagefit.cli.shared import target
    from sagefit.job import load_job

    planned = deploy.plan_job(plan(load_job(reference)), target())
    document = Document(reference, planned.terraform.show_json(planned.plan).encode("utf-8"))
    return document, planned.plan.path, f"{planned.job.platform}/jobs/{planned.job.name}", planned.job_plan


def _policies(document: Document) -> PolicyDiff:
    from sagefit.reviewing.scan import policy_diff

    return policy_diff(document)


def _print(found: Review, shape: str) -> None:
    if shape == "json":
        sys.stdout.write(json.dumps(as_json(found)) + "\n")
    elif shape == "markdown":
        sys.stdout.write(markdown(found))
    else:
        from sagefit.reviewing.terminal import page

        for part in page(found):
            out.print(part, soft_wrap=isinstance(part, Text))
