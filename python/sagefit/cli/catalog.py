"""Commands of the catalog: ``show`` and ``refresh``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sagefit.catalog import store
from sagefit.catalog.instance_table import instances
from sagefit.catalog.prices import REFERENCE_REGION, checked_region, price
from sagefit.catalog.view import Row, as_json, legend, table
from sagefit.console import AWS, cloud_name, command, err, out
from sagefit.errors import FAILED, REFUSED, SagefitError
from sagefit.nearest import did_you_mean

if TYPE_CHECKING:
    import boto3

app = typer.Typer(name="catalog", help="What training instances have and cost.", no_args_is_help=True)

RegionOption = Annotated[str | None, typer.Option("--region", help="Prices of this region; default: the shell's.")]


@app.command()
def show(
    types: Annotated[
        list[str] | None, typer.Argument(metavar="[TYPE]...", help="These types; ml. may be left out.")
    ] = None,
    region: RegionOption = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="Only types with this accelerator, such as A10G.")] = None,
    family: Annotated[str | None, typer.Option("--family", help="Only this family, such as g5.")] = None,
    min_gpu_memory: Annotated[
        float | None, typer.Option("--min-gpu-memory", metavar="GIB", help="Usable memory of each GPU, at least.")
    ] = None,
    min_memory: Annotated[
        float | None, typer.Option("--min-memory", metavar="GIB", help="Usable memory of the host, at least.")
    ] = None,
    max_price: Annotated[
        float | None, typer.Option("--max-price", metavar="USD", help="Per instance-hour, at most.")
    ] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Show what training instances have and cost, cheapest first."""
    where = checked_region(region or _session().region_name or REFERENCE_REGION)
    named = {_known(name) for name in types or ()}
    for option, number in (
        ("--min-gpu-memory", min_gpu_memory),
        ("--min-memory", min_memory),
        ("--max-price", max_price),
    ):
        if number is not None and not 0 <= number < math.inf:
            raise SagefitError(f"{option} {number:g}: no amount", hint="give a number from 0 on")
    gpu = _one_of("--gpu", gpu, {i.accelerator for i in instances().values() if i.accelerator})
    family = _one_of("--family", family and family.removeprefix("ml."), {i.family for i in instances().values()})
    shown = [
        (instance, found)
        for instance in instances().values()
        for found in (price(instance.ml_type, where),)
        if (not named or instance.ml_type in named)
        and gpu in (None, instance.accelerator)
        and family in (None, instance.family)
        and (min_gpu_memory is None or (instance.usable_gpu_gib or 0) >= min_gpu_memory)
        and (min_memory is None or instance.usable_host_gib >= min_memory)
        and (max_price is None or (found is not None and found.usd_per_hour <= max_price))
    ]
    shown.sort(key=lambda row: (row[1] is None, row[1].usd_per_hour if row[1] else 0.0, row[0].ml_type))
    if json_lines:
        for instance, found in shown:
            print(json.dumps(as_json(instance, where, found)))
    elif shown:
        _print(shown, where)
    if not shown:
        err.print("no training instance is like that; leave an option out", markup=False)


@app.command()
def refresh(region: RegionOption = None) -> None:
    """Ask EC2 and the price list for today's figures of a region, and keep them for this user."""
    if cloud_name() != AWS:
        raise SagefitError(
            f"catalog refresh: --cloud {cloud_name()} sells nothing; AWS alone has prices",
            hint="leave --cloud and CLOUD out, to ask AWS",
            exit_code=REFUSED,
        )
    from sagefit.catalog.refresh import ask

    session = _session()
    where = region or session.region_name
    if not where:
        raise SagefitError("catalog refresh: no region", hint="add --region, or set AWS_REGION")
    with _progress() as say:
        snapshot = ask(session, where, say)
    try:
        path = store.write(snapshot)
    except OSError as error:
        raise SagefitError(
            f"{store.folder()}: cannot be written: {error}",
            hint=f"name another folder in {store.FOLDER_VARIABLE}",
            exit_code=FAILED,
        ) from error
    err.print(
        f"{where}: {len(snapshot.prices)} training prices and {len(snapshot.specs)} instance types, in {path}",
        markup=False,
        soft_wrap=True,
    )


def _print(rows: list[Row], region: str) -> None:
    out.print(f"prices of {region}, USD per instance-hour of training on demand", markup=False)
    out.print(table(rows, out.width))
    for line in legend(rows, out.width):
        out.print(line, markup=False)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A line that says what is being asked, on a terminal; silence elsewhere."""
    if not err.is_terminal:
        yield lambda _: None
        return
    with err.status("asking AWS ...") as status:
        yield lambda what: status.update(f"asking AWS: {what} ...")


def _known(name: str) -> str:
    ml_type = name if name.startswith("ml.") else f"ml.{name}"
    if ml_type in instances():
        return ml_type
    raise SagefitError(
        f"{name}: no instance type that SageMaker trains on",
        hint=did_you_mean(ml_type, instances(), f"see {command('catalog', 'show')}"),
    )


def _one_of(option: str, name: str | None, known: Collection[str]) -> str | None:
    """The one of ``known`` that is written ``name``, in whatever case."""
    spelt = {each.lower(): each for each in known}
    if name is None or name.lower() in spelt:
        return name and spelt[name.lower()]
    hint = did_you_mean(name, known, f"one of {', '.join(sorted(known))}", most=3)
    raise SagefitError(f"{option} {name}: no training instance is of that kind", hint=hint)


def _session() -> boto3.Session:
    import boto3
    from botocore.exceptions import ProfileNotFound

    try:
        return boto3.Session(region_name=os.environ.get("AWS_REGION"))
    except ProfileNotFound as error:
        raise SagefitError(str(error), hint="correct AWS_PROFILE", exit_code=FAILED) from error
