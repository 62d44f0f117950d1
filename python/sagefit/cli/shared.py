"""What several commands share: their arguments, the cloud they talk to, and the question before an apply."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sagefit.console import cloud_name, err
from sagefit.errors import REFUSED, SagefitError
from sagefit.target import Target, activate
from sagefit.terraform import Plan, Terraform

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A name in jobs/ or the path of a job file.")]
ResumeOption = Annotated[
    str | None,
    typer.Option("--resume", metavar="RUN", help="Begin with a copy of the checkpoints of RUN, or of a job's latest."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before applying.")]


def target() -> Target:
    """The cloud of this command, with the environment pointing at it."""
    return activate(cloud_name())


def say(words: str) -> None:
    """A line of progress."""
    err.print(words, markup=False, soft_wrap=True)


def agreed(saved: Plan, where: str, *, yes: bool) -> bool:
    """Show what a plan does and ask; False when it does nothing. Raises SagefitError (exit code 4) on a no."""
    if saved.is_empty:
        return False
    for line in saved.summary():
        err.print(f"  {line}", markup=False, soft_wrap=True)
    counts = {"to create": saved.count("create"), "to change": saved.count("update")}
    counts |= {"to take into the state": saved.count("import")}
    counts |= {"to replace": saved.count("replace"), "to destroy": saved.count("delete", "remove")}
    err.print(", ".join(f"{count} {what}" for what, count in counts.items() if count) or "outputs change")
    if not yes and not confirmed(f"apply this to {where}?"):
        raise SagefitError("not applied", hint="answer yes, or give --yes (make: YES=1)", exit_code=REFUSED)
    return True


def confirmed(question: str) -> bool:
    """Ask; no where nobody can be asked."""
    if not sys.stdin.isatty():
        return False
    return err.input(f"{question} [y/N] ", markup=False).strip().lower() in ("y", "yes")


def print_plan(terraform: Terraform, saved: Plan) -> None:
    """The whole plan, as Terraform words it."""
    sys.stdout.write(terraform.show(saved))
