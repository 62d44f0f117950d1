"""Commands of the embedded cloud: ``up``, ``down``, ``status``, ``env``, ``calls``."""

from __future__ import annotations

import json
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sagefit import toolchain
from sagefit.cloud import control
from sagefit.cloud.aws_environment import UNSET
from sagefit.cloud.calls import read_calls
from sagefit.console import command, err, out
from sagefit.errors import FAILED
from sagefit.paths import home

app = typer.Typer(name="cloud", help="An embedded cloud on 127.0.0.1: no account, real training.", no_args_is_help=True)


@app.command()
def up(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.", min=0, max=65535)] = 0,
    faults: Annotated[
        Path | None, typer.Option(help="YAML file of faults to inject.", exists=True, dir_okay=False)
    ] = None,
    memory_scale: Annotated[
        float | None,
        typer.Option(
            help=f"Share of an instance's memory a training job gets here; default {control.DEFAULT_MEMORY_SCALE:g}, "
            f"or what {control.MEMORY_SCALE_VARIABLE} says."
        ),
    ] = None,
    start_seconds: Annotated[
        float | None,
        typer.Option(help="Seconds a training job waits for instances, unless a warm pool has them; default 0.", min=0),
    ] = None,
    clock: Annotated[
        float | None,
        typer.Option(help="How many seconds pass for schedules in each second; default 1.", min=1),
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay in this terminal until interrupted.")] = False,
) -> None:
    """Start the cloud, or say that it runs already."""
    err.print("starting the embedded cloud ...")
    began = time.monotonic()
    now, started = control.up(
        port=port,
        faults=faults,
        memory_scale=memory_scale,
        start_seconds=start_seconds,
        clock=clock,
        foreground=foreground,
    )
    seconds = f" in {time.monotonic() - began:.1f} s" if started and not foreground else ""
    word = "ended" if foreground and started else "up" if started else "already up"
    err.print(f"embedded cloud {word}{seconds}: {now.endpoint} (pid {now.pid})")
    if not foreground:
        err.print(f'point this shell at it with: eval "$({command("cloud", "env")})"', soft_wrap=True)


@app.command()
def down() -> None:
    """End the cloud and the training it runs. What was applied to it is lost."""
    err.print("embedded cloud ended" if control.down() else "no embedded cloud was running")


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Say whether the cloud runs, and where. Exit code 1 if it does not."""
    now = control.status()
    if as_json:
        answer = {"running": now is not None} | (asdict(now) if now else {})
        print(json.dumps(answer, default=str))
    elif now:
        out.print(f"running at {now.endpoint} (pid {now.pid}), {now.uptime_seconds:.0f} s, {now.calls} calls")
        out.print(f"training jobs: {now.training_jobs}, of them running: {now.running_jobs}")
        out.print(f"memory scale: {now.memory_scale:g}, clock: {now.clock:g}, faults: {now.faults or 'none'}")
        out.print(f"state: {now.home}")
    else:
        out.print("not running")
    if now is None:
        raise typer.Exit(FAILED)


@app.command()
def env() -> None:
    """Print lines for a shell: eval "$(sagefit cloud env)". With them Terraform and the AWS tools work by hand, too."""
    settings = toolchain.terraform_environment(home())
    mirror = {name: value for name, value in settings.items() if name == "TF_CLI_CONFIG_FILE" and value}
    for name, value in (control.environment() | mirror).items():
        print(f"export {name}={shlex.quote(value)}")
    print("unset " + " ".join(UNSET))


@app.command()
def calls(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Print every API call since the cloud was started."""
    found = read_calls()
    if as_json:
        sys.stdout.writelines(json.dumps(asdict(call)) + "\n" for call in found)
        return
    table = Table("time", "service", "action", "kind", "status", box=None, pad_edge=False)
    for call in found:
        colour = "red" if call.status >= 400 else "yellow" if call.kind == "write" else "default"
        table.add_row(call.time, call.service, call.action, f"[{colour}]{call.kind}[/]", str(call.status))
    out.print(table)
