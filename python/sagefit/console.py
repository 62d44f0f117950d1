"""The two terminals: results on ``out`` (stdout), progress and errors on ``err`` (stderr); and commands to suggest.

Rich already leaves out colour when ``NO_COLOR`` is set or the stream is no terminal. What it also does
without a terminal is to wrap at 80 columns, which would cut names that scripts read; so a pipe gets wide lines.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from rich.console import Console

_PIPE_WIDTH = 200

out = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
err = Console(highlight=False, stderr=True, width=None if sys.stderr.isatty() else _PIPE_WIDTH)


_cloud_option: list[str] = []


def remember_cloud(name: str) -> None:
    """Let suggested commands talk to the cloud that this one talks to."""
    _cloud_option[:] = [] if name == "aws" else ["--cloud", name]


def command(*words: str) -> str:
    """A command of ours as the user can type it here: with the path and the cloud of the command that runs now."""
    program = sys.argv[0]
    if Path(program).name != "sagefit" or shutil.which("sagefit") == program:
        program = "sagefit"
    option = [] if words[0] == "cloud" else _cloud_option
    return " ".join([program, *option, *(shlex.quote(word) for word in words)])
