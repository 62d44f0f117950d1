"""``sagefit examples``: run all of them on a cloud of their own, and say what they took."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sagefit.cli.board import Board
from sagefit.console import err, out
from sagefit.errors import FAILED
from sagefit.examples import Example, Result, Stage, all_examples, chosen
from sagefit.examples.result import COMPLETED, PLANNED
from sagefit.examples.result import FAILED as HAS_FAILED
from sagefit.examples.table import HEADINGS, cells
from sagefit.paths import display

app = typer.Typer()

_COLOURS = {COMPLETED: "green", HAS_FAILED: "red", PLANNED: "cyan"}


@app.command("examples")
def examples_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Examples, or EXAMPLE/JOB; without it, all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, in the order of the table.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Keep the results: examples/results.json, and the tables of the READMEs.")
    ] = False,
    parallel: Annotated[int, typer.Option("--parallel", min=1, help="How many jobs at once.")] = 2,
) -> None:
    """Run the examples end to end on an embedded cloud of their own, which is taken down afterwards.

    An attempt that dies of memory is part of some of them: the job goes on to the next. Exit code 1 if a job failed.
    """
    picked = chosen(names or [], all_examples())
    err.print("starting an embedded cloud of its own ...")
    with Stage.open(picked) as stage, Board(each.name for each in picked if not each.planned_only) as board:
        progress = _Progress(board)
        results = stage.run_all(picked, parallel, progress.tell, progress.done)
    if as_json:
        for result in results:
            print(json.dumps(result.as_json()))
    else:
        _print(results)
    for result in results:
        if result.status == HAS_FAILED:
            err.print(Text(f"{result.name} failed: {result.reason}", style="red"), soft_wrap=True)
    if write:
        from sagefit.examples import pages

        for path in pages.keep(results):
            err.print(f"{display(path)} written")
    if any(result.status == HAS_FAILED for result in results):
        raise typer.Exit(FAILED)


def _print(results: list[Result]) -> None:
    table = Table(*HEADINGS, box=None, pad_edge=False, header_style="bold")
    for result in results:
        name, status, *rest = cells(result)
        table.add_row(Text(name), Text(status, style=_COLOURS[result.status]), *map(Text, rest))
    out.print(table)
    for result in results:
        if result.status == PLANNED:
            out.print(Text(f"{result.name} is planned only: {result.reason}"), soft_wrap=True)


class _Progress:
    """What each example does now."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def tell(self, example: Example, line: str) -> None:
        """A line that `sagefit run` printed; those of its ledger are in the table at the end."""
        if line.startswith(("attempt ", "run ", "error: ")) or line.endswith(" applied"):
            self._board.say(example.name, Text(line))

    def done(self, example: Example, result: Result) -> None:
        """It has ended."""
        if not example.planned_only:
            self._board.say(example.name, Text(result.status, style=_COLOURS[result.status]))
