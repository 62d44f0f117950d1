"""``sagefit changed``: which stacks a change touches."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sagefit.console import err, out, print_error
from sagefit.errors import INVALID
from sagefit.gitops.changed import changed

app = typer.Typer()


@app.command("changed")
def changed_command(
    base: Annotated[str, typer.Option("--base", metavar="REF", help="What the change is to be merged into.")],
    head: Annotated[
        str | None, typer.Option("--head", metavar="REF", help="The change; without it, the files as they lie here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which jobs and platforms a change touches, and through which files; and what it changes of the reviewer."""
    report = changed(base, head)
    if as_json:
        print(json.dumps(report.as_json()))
    else:
        for touched in report.touched:
            out.print(f"{touched.change:<8} {touched.key:<40} {touched.reason}", markup=False, soft_wrap=True)
        for guarded in report.guarded:
            out.print(f"{'reviewer':<8} {guarded.path.as_posix():<40} {guarded.what}", markup=False, soft_wrap=True)
        if not report.touched and not report.broken and not report.guarded:
            err.print(f"no job or platform differs from {report.base[:12]}")
        for _, error in report.broken:
            print_error(error)
    if report.broken:
        raise typer.Exit(INVALID)
