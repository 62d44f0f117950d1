"""``sagefit doctor``: what would go wrong before anything is applied, a line each."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from sagefit.cli.shared import target
from sagefit.console import err, out
from sagefit.doctor import Finding, examine
from sagefit.errors import FAILED, SagefitError
from sagefit.job import load_job
from sagefit.planning import plan

app = typer.Typer()

_WORDS = {"ok": ("ok", "green"), "fault": ("FAULT", "red"), "unknown": ("?", "yellow")}


@app.command()
def doctor(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A name in jobs/ or the path of a job file; else a platform.")
    ] = None,
    platform: Annotated[
        str | None, typer.Option("--platform", metavar="NAME", help="The platform to look at; default dev.")
    ] = None,
    lines: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Say what would go wrong on AWS before anything is applied, a line each with what to do. Nothing is changed.

    Exit code 1 when anything would go wrong. What could not be asked is no fault.
    """
    if job and platform:
        raise SagefitError("doctor: name a JOB or --platform, not both; a job file names its platform")
    where, planned = target(), plan(load_job(job)) if job else None
    name = planned.job.platform if planned else platform or "dev"
    counts = {"ok": 0, "fault": 0, "unknown": 0}
    with err.status("asking AWS"):
        for finding in examine(where, name, planned):
            counts[finding.state] += 1
            out.print(_json(finding) if lines else as_line(finding), soft_wrap=True)
    faults = counts["fault"]
    told = [f"{faults} fault{'s' if faults > 1 else ''}" if faults else "nothing wrong was found"]
    told += [f"{counts['unknown']} could not be asked"] if counts["unknown"] else []
    err.print(", ".join(told))
    if faults:
        raise typer.Exit(FAILED)


def as_line(finding: Finding) -> Text:
    """A finding on one line."""
    word, style = _WORDS[finding.state]
    text = Text.assemble((f"{word:<6}", style), f"{finding.check:<12}", finding.message)
    return text.append(f"; fix: {finding.fix}", style="bold") if finding.fix else text


def _json(finding: Finding) -> Text:
    return Text(json.dumps(asdict(finding)))
