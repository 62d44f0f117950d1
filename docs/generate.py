"""Write the pages that are made from code: ``make docs``. The tests compare them with what is committed."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from pathlib import Path

from sagefit.job.schema import schema

HERE = Path(__file__).parent
EXIT_CODES = """
Exit codes: 0 done, 1 failed, 2 usage or invalid input, 3 does not fit, 4 refused (a stale plan, an edited render, over
`max_price`, not confirmed), 130 interrupted. Results go to standard output, progress and errors to standard error.
`NO_COLOR` is respected, and without a terminal there is neither colour nor animation.
"""


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    command = [
        sys.executable,
        "-m",
        "typer",
        "sagefit.cli",
        "utils",
        "docs",
        "--name",
        "sagefit",
        "--title",
        "Commands",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    title, rest = html.unescape(done.stdout).split("\n", 1)
    return {
        "cli.md": f"{title}\n{EXIT_CODES}{rest.rstrip()}\n",
        "job.schema.json": json.dumps(schema(), indent=2) + "\n",
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(f"docs/{name}")
