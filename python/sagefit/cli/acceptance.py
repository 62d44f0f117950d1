"""``sagefit acceptance``: what AWS really does, by short jobs on a real account."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sagefit.acceptance import Case, Price, Result, Suite, chosen, price_of
from sagefit.cli.board import Board
from sagefit.cli.shared import YesOption, confirmed, target
from sagefit.console import command, err, out
from sagefit.doctor.account import Caller, find_caller
from sagefit.errors import FAILED, REFUSED, SagefitError
from sagefit.job.values import duration
from sagefit.paths import ACCEPTANCE, display

app = typer.Typer()

_COLOURS = {"as expected": "green", "differs": "red", "failed": "red", "not seen": "yellow", "not run": "yellow"}
_SUITE = "suite"
_EMBEDDED = ACCEPTANCE / "seen" / "local"


@app.command()
def acceptance(
    names: Annotated[list[str] | None, typer.Argument(metavar="[CASE]...", help="Cases; without one, all.")] = None,
    prices: Annotated[
        bool, typer.Option("--prices", help="Print the cases and what each costs at most; make nothing.")
    ] = False,
    limit: Annotated[float, typer.Option("--limit", min=0, metavar="USD", help="What all of it may cost.")] = 6.0,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            file_okay=False,
            help="Where to write what was seen; default acceptance/seen/CLOUD-DATE.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Compare what was seen with files of this folder; default acceptance/seen/local.",
        ),
    ] = None,
    parallel: Annotated[int, typer.Option("--parallel", min=1, help="How many cases at once.")] = 2,
    destroy: Annotated[
        bool, typer.Option("--destroy", help="Take down what an earlier suite has left; run nothing.")
    ] = False,
    lines: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    yes: YesOption = False,
) -> None:
    """Run short jobs of every kind on a real account, write down what AWS does, and take everything down.

    The price is told and confirmed before, and the limit is kept: a case that could go over it is not run. Exit code 1
    when a case did not end as expected. See docs/acceptance.md.
    """
    where, caller = target(), find_caller()
    if not isinstance(caller, Caller):
        raise SagefitError(caller.message, hint=caller.fix)
    cases = chosen(names or [])
    board = Board([_SUITE, *(case.name for case in cases)])
    suite = Suite(
        where,
        caller.account,
        caller.region,
        limit,
        folder or ACCEPTANCE / "seen" / f"{where.name}-{datetime.now(timezone.utc):%y%m%d-%H%M%S}",
        lambda who, what: board.say(who if who else _SUITE, Text(what)),
        before=against or _EMBEDDED,
        parallel=parallel,
    )
    if destroy:
        if not suite.left:
            err.print("nothing is left")
        suite.take_down()
        return
    prices_of = [(case, price_of(case, caller.region)) for case in cases]
    if prices:
        if lines:
            for case, price in prices_of:
                print(json.dumps({"case": case.name, "shows": case.shows, "usd_at_most": round(price.usd, 4)}))
        else:
            _print_prices(prices_of, caller, on=out)
        return
    _agree(prices_of, caller, limit, yes=yes)
    with board:
        results = suite.run(cases, lambda result: board.say(result.case, _short(result)))
    if lines:
        for result in results:
            print(json.dumps(result.as_json()))
    else:
        _print(results)
    if any(result.is_bad for result in results):
        raise typer.Exit(FAILED)


def _agree(prices: list[tuple[Case, Price]], caller: Caller, limit: float, *, yes: bool) -> None:
    """Tell the price and ask. Raises SagefitError (exit code 4) on a no, or over the limit."""
    most = sum(price.usd for _, price in prices)
    if most > limit:
        raise SagefitError(
            f"the cases can cost {most:.2f} USD, and the limit is {limit:.2f}; nothing was begun",
            hint=f"name fewer cases, or raise --limit; what each costs: {command('acceptance', '--prices')}",
            exit_code=REFUSED,
        )
    _print_prices(prices, caller, on=err)
    if yes:
        return
    if not confirmed(f"run {len(prices)} cases in account {caller.account}, {caller.region}?"):
        raise SagefitError("not run", hint="answer yes, or give --yes", exit_code=REFUSED)


def _print_prices(prices: list[tuple[Case, Price]], caller: Caller, *, on: Console) -> None:
    table = Table("case", "shows", box=None, pad_edge=False, header_style="bold")
    table.add_column("USD at most", justify="right")
    for case, price in prices:
        table.add_row(case.name, case.shows, f"{'~' if price.estimated else ''}{price.usd:.2f}")
    on.print(table)
    estimated = " (~ is by estimated prices)" if any(price.estimated for _, price in prices) else ""
    most = sum(price.usd for _, price in prices)
    on.print(
        f"training and processing cost at most {most:.2f} USD in {caller.region}{estimated}, every attempt to its time "
        "limit and repeated after errors of AWS; keys, alarms and dashboards of an hour add some cents",
        soft_wrap=True,
    )


def _print(results: list[Result]) -> None:
    table = Table("case", "result", box=None, pad_edge=False, header_style="bold")
    table.add_column("took", justify="right")
    table.add_column("USD", justify="right")
    for result in results:
        status = Text(result.status, style=_COLOURS[result.status])
        usd = "-" if result.usd is None else f"{result.usd:.4f}"
        table.add_row(result.case, status, duration(result.seconds), usd)
    out.print(table)
    for result in results:
        if result.why:
            out.print(Text.assemble((f"{result.case} ", "bold"), result.why), soft_wrap=True)
    files = {str(Path(result.file).parent) for result in results if result.file}
    for written in files:
        err.print(f"what was seen is in {display(Path(written))}", soft_wrap=True)


def _short(result: Result) -> Text:
    return Text(result.status, style=_COLOURS[result.status])
