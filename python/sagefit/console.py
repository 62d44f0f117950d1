"""The two terminals: results on ``out`` (stdout), progress and errors on ``err`` (stderr).

Rich already leaves out colour when ``NO_COLOR`` is set or the stream is no terminal. What it also does
without a terminal is to wrap at 80 columns, which would cut names that scripts read; so a pipe gets wide lines.
"""

from __future__ import annotations

import sys

from rich.console import Console

_PIPE_WIDTH = 200

out = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
err = Console(highlight=False, stderr=True, width=None if sys.stderr.isatty() else _PIPE_WIDTH)
