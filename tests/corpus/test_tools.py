"""What tools print when they fail is told: a table of their words, and some tools of this machine asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import yaml_tables
from sagefit.failures import diagnose

TABLE = yaml_tables.read(Path(__file__).with_name("tools.yaml"))
ROWS = [(failure_class, row) for failure_class, rows in TABLE.items() for row in rows]
PACKAGES = "/home/user/env/lib/python3.11/site-packages"


def _log(row: dict[str, Any]) -> list[str]:
    if "log" in row:
        return str(row["log"]).splitlines()
    raised_in = str(row.get("raised_in", "acme/core.py"))
    path = raised_in if raised_in.startswith(("/", "<")) else f"{PACKAGES}/{raised_in}"
    head = ["Traceback (most recent call last):", '  File "/home/user/train.py", line 9, in <module>', "    main()"]
    return [*head, f'  File "{path}", line 99, in f', "    g(x)", *str(row["exception"]).splitlines()]


@pytest.mark.parametrize(
    ("failure_class", "row"), ROWS, ids=[f"{number}-{name}" for number, (name, _) in enumerate(ROWS)]
)
def test_the_words_of_tools_are_told(failure_class: str, row: dict[str, Any]) -> None:
    found = diagnose(log=["epoch 1: loss 0.4", *_log(row)], exit_code=row.get("exit_code", 1))
    assert found.failure_class == failure_class, found


@pytest.mark.parametrize(
    "command", [["tar", "-xf", "rows"], ["gzip", "-dc", "rows.gz"], ["python3", "-m", "zipfile", "-l", "rows"]]
)
def test_tools_of_this_machine_say_so(command: list[str], tmp_path: Path) -> None:
    for name in ("rows", "rows.gz"):
        (tmp_path / name).write_bytes(b"no archive at all\n" * 99)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode
    assert diagnose(log=done.stderr.splitlines(), exit_code=done.returncode).failure_class == "data", done.stderr
