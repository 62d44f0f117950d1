"""The command ``report``."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sagefit import reporting, running
from sagefit.cli.runs import plan_of
from sagefit.cli.shared import say, target
from sagefit.console import command
from sagefit.errors import SagefitError
from sagefit.job import job_names, load_job
from sagefit.paths import display
from sagefit.platform import load_platform

app = typer.Typer()

FOLDER = Path("reports")


@app.command()
def report(
    about: Annotated[str, typer.Argument(metavar="RUN|JOB", help="A run, or a job for its latest runs.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to; - for standard output. [default: reports/NAME.html]"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many runs of a job.")] = 5,
    show: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
) -> None:
    """Write a page about a run, or about the runs of a job: what happened, memory over time, why it died, what it cost.

    The page is one file of HTML that needs nothing else. A report that is there is written anew; any other file stays.
    """
    to_pipe = out == Path("-")
    if to_pipe and show:
        raise SagefitError("--open takes a file, not standard output", hint="leave out --out -")
    where = target()
    page, name = _page(about, limit, where.name)
    if to_pipe:
        sys.stdout.write(page)
        return
    path = out or FOLDER / f"{name}.html"
    reporting.write(page, path)
    print(display(path))
    if show and not webbrowser.open(path.resolve().as_uri()):
        say("no browser was found; open the file with one")


def _page(about: str, limit: int, cloud: str) -> tuple[str, str]:
    """The page, and what it is about."""
    if about not in job_names() and not about.endswith((".yaml", ".yml")):
        run = running.find_run(about)
        plan = plan_of(run, about)
        if plan is None:
            say(f"the job file of {run.job} is not here: no predictions and no changes; give its path as RUN")
        return reporting.page_of_run(reporting.gather(run, plan, cloud), cloud), run.name
    job = load_job(about, uploads=False)
    found = running.latest_runs(job.name, load_platform(job.platform), limit=limit)
    if not found:
        raise SagefitError(f"{job.name} has no runs yet", hint=f"start one: {command('run', job.reference)}")
    stories = []
    for at, run in enumerate(found, 1):
        say(f"reading {run.name} ({at} of {len(found)})")
        stories.append(reporting.gather(run, plan_of(run, about), cloud))
    return reporting.page_of_job(job.name, stories, cloud), job.name
