"""``sagefit init``: a new job from a template."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sagefit.console import command, err, out
from sagefit.errors import SagefitError
from sagefit.examples.template import create, template, templates
from sagefit.job import load_job
from sagefit.paths import display

app = typer.Typer()


@app.command("init")
def init_command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The name of the new job.")] = None,
    like: Annotated[str, typer.Option("--template", "-t", help="The example to start from.")] = "minimal",
    listed: Annotated[bool, typer.Option("--list", help="List the templates.")] = False,
) -> None:
    """Write a new job, jobs/NAME.yaml, with its code and data in jobs/NAME/. Nothing is ever overwritten."""
    if listed:
        _print_templates()
        return
    if name is None:
        raise SagefitError("init: name the new job", hint=f"or see what it can start from: {command('init', '--list')}")
    example = template(like)
    for path in create(name, example):
        err.print(f"{display(path)} written")
    cloud = "" if example.planned_only else " CLOUD=local"
    image = [f"make image NAME={name}"] if load_job(str(example.path)).image.build else []
    for index, line in enumerate([*image, f"make size NAME={name}", f"make job NAME={name}{cloud}"]):
        out.print(f"{'      ' if index else 'next: '}{line}")
    if example.planned_only:
        err.print(Text(f"planned only: {example.planned_only}"), soft_wrap=True)
    err.print(f"what it shows: {display(example.path.parent)}/README.md")


def _print_templates() -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for example in templates():
        table.add_row(example.name, Text(example.shows))
    out.print(table)
