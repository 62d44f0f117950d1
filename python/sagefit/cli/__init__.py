"""The command line: arguments in, words and an exit code out. The work is done in the other rooms."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_group

from sagefit import signals
from sagefit.answers import understood
from sagefit.console import AWS, err, print_error, remember_cloud
from sagefit.errors import DONE, FAILED, INTERRUPTED, INVALID, SagefitError
from sagefit.paths import shut_home

# The module whose ``app`` holds a command, or is one with commands of its own; in the order of the help page.
COMMANDS = {
    "size": "sagefit.cli.size",
    "trace": "sagefit.cli.trace",
    "init": "sagefit.cli.init",
    "image": "sagefit.cli.images",
    "render": "sagefit.cli.jobs",
    "plan": "sagefit.cli.jobs",
    "apply": "sagefit.cli.jobs",
    "destroy": "sagefit.cli.jobs",
    "run": "sagefit.cli.jobs",
    "recover": "sagefit.cli.recover",
    "doctor": "sagefit.cli.doctor",
    "start": "sagefit.cli.runs",
    "watch": "sagefit.cli.runs",
    "stop": "sagefit.cli.runs",
    "runs": "sagefit.cli.runs",
    "diagnose": "sagefit.cli.runs",
    "report": "sagefit.cli.report",
    "changed": "sagefit.cli.changed",
    "seal": "sagefit.cli.gitops",
    "status": "sagefit.cli.gitops",
    "comment": "sagefit.cli.gitops",
    "review": "sagefit.cli.review",
    "cloud": "sagefit.cli.cloud",
    "platform": "sagefit.cli.platforms",
    "examples": "sagefit.cli.examples",
    "acceptance": "sagefit.cli.acceptance",
    "catalog": "sagefit.cli.catalog",
}


class _Commands(TyperGroup):
    """Loads only the module of the command that was asked for: the AWS client alone takes longer than a prediction."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            group = get_group(import_module(COMMANDS[cmd_name]).app)
            group.name = cmd_name
            self.commands.update(group.commands if cmd_name in group.commands else {cmd_name: group})
        elif cmd_name not in COMMANDS:  # the suggestion for a misspelt command needs all of them
            for name in COMMANDS:
                self.get_command(ctx, name)
        return self.commands.get(cmd_name)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="SageMaker training jobs that fit in memory.",
)


@app.callback()
def _common(
    cloud: Annotated[
        str, typer.Option("--cloud", envvar=["SAGEFIT_CLOUD", "CLOUD"], help="aws, or local for the embedded cloud.")
    ] = AWS,
) -> None:
    shut_home()
    remember_cloud(cloud or AWS)


def main() -> None:
    """Run the command line; every expected failure ends in a message and the exit code of the contract."""
    signals.listen()
    try:
        code = app(standalone_mode=False) or DONE
        sys.stdout.flush()
    except SagefitError as error:
        print_error(error)
        code = error.exit_code
    except typer.Exit as done:
        code = done.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit) as ended:  # click makes an exit of a broken pipe
        if not isinstance(ended, BrokenPipeError) and not isinstance(ended.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # `sagefit runs | head` has what it wanted
        code = DONE
    except Exception as error:
        code = _foreign(error)
    sys.exit(signals.exit_code() if code == INTERRUPTED else code)


def _foreign(error: Exception) -> int:
    """Click's complaints about arguments and AWS's answers; anything else is a defect and is shown in full."""
    show = getattr(error, "show", None)
    if show is not None:
        show()
        return INVALID
    if busy := understood(error):
        print_error(busy)
        return busy.exit_code
    if type(error).__module__.startswith("botocore."):  # by name, so that only its users load botocore
        err.print(Text(f"error: AWS: {error}", style="red"), soft_wrap=True)
        return FAILED
    raise error
