"""The two terminals: results on ``out`` (stdout), progress and errors on ``err`` (stderr); and commands to suggest.

Rich already leaves out colour when ``NO_COLOR`` is set or the stream is no terminal. Without a terminal Rich also
wraps lines at 80 columns, which would cut names that scripts read. So a pipe gets wide lines.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sagefit.errors import SagefitError

AWS = "aws"
LOCAL = "local"
_PIPE_WIDTH = 200

# Python has no stream at all where the caller closed it (`>&-`); what is written there is lost without a word.
sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115

out = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
err = Console(highlight=False, stderr=True, width=None if sys.stderr.isatty() else _PIPE_WIDTH)


_cloud = AWS


def remember_cloud(name: str) -> None:
    """Set the cloud that this process talks to, and that the commands it suggests will talk to."""
    global _cloud
    _cloud = name


def cloud_name() -> str:
    """The cloud that was remembered: ``aws`` or ``local``, or the unknown name that the user gave."""
    return _cloud


def command(*words: str) -> str:
    """A Sagefit command that the user can type here: with the same path and cloud as the command that runs now."""
    program = sys.argv[0]
    if Path(program).name != "sagefit" or shutil.which("sagefit") == program:
        program = "sagefit"
    option = [] if words[0] == "cloud" or _cloud == AWS else ["--cloud", _cloud]
    return " ".join([program, *option, *(shlex.quote(word) for word in words)])


def print_error(error: SagefitError) -> None:
    """What went wrong and which knob to turn, on the terminal for people."""
    err.print(Text(f"error: {error.message}", style="red"), soft_wrap=True)
    if error.hint:
        err.print(Text(f"hint: {error.hint}"), soft_wrap=True)
