"""Write the pages that are made from code: ``make docs``. With ``--check`` only say which are out of date."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from pathlib import Path

from api import api
from denied_table import with_denied
from image_tables import with_image_tables
from limit_table import limit_page
from oracle_table import with_oracles
from price_table import with_prices
from rule_table import with_rules
from state_table import with_state_table
from tables import with_tables

from sagefit.job.schema import schema
from sagefit.paths import ROOT

ROLES = ROOT / "examples" / "gitops" / "roles" / "README.md"
EXIT_CODES = """
Exit codes: 0 done, 1 failed, 2 usage or invalid input, 3 does not fit, 4 refused (a stale plan, an edited render, over
`max_price`, not confirmed), 130 interrupted (143 by SIGTERM, 129 by SIGHUP). Results go to standard output, progress
and errors to standard error.
`NO_COLOR` is respected, and without a terminal there is neither colour nor animation.
"""


def pages() -> dict[Path, str]:
    """The generated pages by path, and those with generated tables."""
    tables = [ROOT / "docs" / "platform.md", *sorted(ROOT.glob("modules/*/README.md"))]
    return {
        ROOT / "docs" / "cli.md": commands(),
        ROOT / "docs" / "api.md": api(),
        ROOT / "docs" / "limits.md": limit_page(),
        ROOT / "docs" / "job.schema.json": json.dumps(schema(), indent=2) + "\n",
        ROOT / "docs" / "images.md": with_image_tables(ROOT / "docs" / "images.md"),
        ROOT / "docs" / "aws.md": with_oracles(with_rules(ROOT / "docs" / "aws.md")),
        ROOT / "docs" / "acceptance.md": with_prices(ROOT / "docs" / "acceptance.md"),
        ROLES: with_denied(ROLES),
        ROOT / "docs" / "state.md": with_state_table(ROOT / "docs" / "state.md"),
        **{page: with_tables(page) for page in tables},
    }


def commands() -> str:
    """The ``--help`` of every command."""
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
    return f"{title}\n{EXIT_CODES}{rest.rstrip()}\n"


def main(arguments: list[str]) -> int:
    """Write what is out of date, or with ``--check`` name it; 1 if ``--check`` found something."""
    check = "--check" in arguments
    stale = {
        page: text for page, text in pages().items() if not page.exists() or page.read_text(encoding="utf-8") != text
    }
    for page, text in stale.items():
        if not check:
            page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)} {'is out of date: make docs' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
