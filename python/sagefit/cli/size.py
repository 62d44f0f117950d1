"""``sagefit size``: predict, choose, and print."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sagefit import signals
from sagefit.catalog.prices import REFERENCE_REGION, checked_region
from sagefit.console import err, out, print_error
from sagefit.errors import DONE, SagefitError
from sagefit.job import JobNames, load_job
from sagefit.paths import display
from sagefit.planning import JobPlan
from sagefit.size import as_json, size_job
from sagefit.size.view import page

app = typer.Typer()

MANY = 50
"""Above so many jobs a second process is worth its start."""


@app.command()
def size(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Names in jobs/ or paths of job files.")],
    lines: Annotated[bool, typer.Option("--json", help="One JSON object a line, in the order of the jobs.")] = False,
    region: Annotated[
        str | None,
        typer.Option("--region", envvar=["AWS_REGION", "AWS_DEFAULT_REGION"], help="Show prices of this region."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show all candidates, not those around the choice.")] = False,
    measured: Annotated[
        bool,
        typer.Option(
            "--runs", help="First fetch what the job's runs measured, and keep it in NAME.peaks.json beside the job."
        ),
    ] = False,
) -> None:
    """Predict the memory a job needs, choose the instance, and show the attempts. Nothing is asked of AWS, but for
    --runs.

    What earlier runs measured (NAME.peaks.json beside the job file) counts for more than what is predicted.

    Exit code 3 when nothing fits; of several jobs the highest exit code counts.
    """
    where = checked_region(region or REFERENCE_REGION)
    code = _learn(jobs) if measured else DONE
    priced = False
    for text, outcome in _all(jobs, where) if lines else (_page(job, where, every=every) for job in jobs):
        sys.stdout.write(text)
        code, priced = max(code, outcome), priced or "USD" in text
    if priced and region is None and not lines:
        sys.stdout.flush()
        err.print(f"prices are those of {REFERENCE_REGION}; choose another region with --region or AWS_REGION")
    if code:
        raise typer.Exit(code)


def _learn(references: list[str]) -> int:
    """Keep what the runs of the jobs measured, and say so. Returns the highest exit code of what went wrong."""
    from sagefit import running  # the AWS client takes longer than a prediction
    from sagefit.cli.shared import target
    from sagefit.memory.peaks import path_of, save
    from sagefit.platform import load_platform

    cloud, code = target().name, DONE
    for reference in references:
        try:
            job = load_job(reference, _names())
            found = running.measured(job, load_platform(job.platform), cloud)
            changed = save(job, found)
        except SagefitError as error:
            print_error(error)
            code = max(code, error.exit_code)
            continue
        where = display(path_of(job))
        if changed:
            err.print(f"{where} written: {len(found)} measured attempts. Commit it with the job", soft_wrap=True)
        else:
            err.print(f"{where} is up to date" if found else f"no run of {job.name} has measured anything yet")
    return code


def _page(reference: str, region: str, *, every: bool) -> tuple[str, int]:
    """The page about one job and its exit code; what is wrong with the job goes to the terminal at once."""
    try:
        sizing = size_job(JobPlan(load_job(reference, _names())), region)
    except SagefitError as error:
        print_error(error)
        return "", error.exit_code
    with out.capture() as written:
        for part in page(sizing, every=every):
            out.print(part, soft_wrap=isinstance(part, Text))
    return written.get(), sizing.exit_code


def _all(references: list[str], region: str) -> Iterator[tuple[str, int]]:
    """The JSON line of each job and its exit code, in order."""
    line, processes = partial(_line, region=region), min(os.cpu_count() or 1, 8)
    if len(references) < MANY or processes == 1:
        yield from map(line, references)
        return
    with multiprocessing.Pool(processes, signals.leave_to_parent) as pool:
        yield from pool.imap(line, references, chunksize=16)
        pool.close()
        pool.join()


def _line(reference: str, region: str) -> tuple[str, int]:
    name = Path(reference).stem  # what a job is called that does not say it
    try:
        job = load_job(reference, _names())
        name, sizing = job.name, size_job(JobPlan(job), region)
    except SagefitError as error:
        return json.dumps({"job": name, "error": str(error)}) + "\n", error.exit_code
    return json.dumps(as_json(sizing)) + "\n", sizing.exit_code


@cache
def _names() -> JobNames:
    """One for this process: each folder is read once."""
    return JobNames()
