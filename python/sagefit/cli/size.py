"""``sagefit size``: predict, choose, and print."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Annotated

import typer
from rich.text import Text

from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.console import err, out, print_error
from sagefit.errors import DONE, SagefitError
from sagefit.job import JobNames, load_job
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
) -> None:
    """Predict the memory a job needs, choose the instance, and show the attempts. Nothing is asked of AWS.

    Exit code 3 when nothing fits; of several jobs the highest exit code counts.
    """
    if region is None and not lines:
        err.print(f"prices of {REFERENCE_REGION}; --region or AWS_REGION names another region")
    where = region or REFERENCE_REGION
    code = DONE
    for text, outcome in _all(jobs, where) if lines else (_page(job, where, every=every) for job in jobs):
        sys.stdout.write(text)
        code = max(code, outcome)
    if code:
        raise typer.Exit(code)


def _page(reference: str, region: str, *, every: bool) -> tuple[str, int]:
    """The page about one job and its exit code; what is wrong with the job goes to the terminal at once."""
    try:
        sizing = size_job(load_job(reference, _names()), region)
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
    with multiprocessing.Pool(processes, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield from pool.imap(line, references, chunksize=16)


def _line(reference: str, region: str) -> tuple[str, int]:
    try:
        sizing = size_job(load_job(reference, _names()), region)
    except SagefitError as error:
        return json.dumps({"job": reference, "error": str(error)}) + "\n", error.exit_code
    return json.dumps(as_json(sizing)) + "\n", sizing.exit_code


@cache
def _names() -> JobNames:
    """One for this process: each folder is read once."""
    return JobNames()
