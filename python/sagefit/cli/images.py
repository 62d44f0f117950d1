"""``sagefit image``: what `make image` calls."""

from __future__ import annotations

import typer

from sagefit.cli.shared import JobArgument, target
from sagefit.console import err, out
from sagefit.errors import FAILED, SagefitError
from sagefit.images import publish
from sagefit.job import load_job
from sagefit.platform import load_platform

app = typer.Typer()


@app.command()
def image(job: JobArgument) -> None:
    """Build a job's own image (image.build), push it to the platform's repository, and pin its digest beside the job.

    Needs docker, podman or finch, and the right to push to the repository. Prints the digest.
    """
    loaded = load_job(job)
    if target().is_local:
        raise SagefitError(
            "the embedded cloud has no registry to push to, and no container engine to run an own image with",
            hint="push to a platform on AWS; planning works on the embedded cloud",
            exit_code=FAILED,
        )
    pinned = publish(loaded, load_platform(loaded.platform), lambda line: err.print(line, markup=False, soft_wrap=True))
    out.print(pinned.digest)
