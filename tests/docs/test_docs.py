"""What is generated is up to date, and what is written about the job file is true."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from sagefit.cli import app
from sagefit.job.memory_model import Memory
from sagefit.job.model import Job, Resources
from sagefit.job.values import Fields
from sagefit.paths import ROOT


def test_generated_pages_are_up_to_date() -> None:
    check = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("model", [Job, Resources, Memory], ids=lambda model: model.__name__)
def test_every_field_is_documented(model: type[Fields]) -> None:
    page = (ROOT / "docs/job-file.md").read_text(encoding="utf-8")
    missing = [name for name in model.model_fields if f"`{name}`" not in page and f"`{name}." not in page]
    assert not [name for name in missing if f"## {name}\n" not in page]


def options(command: Any, path: str = "sagefit") -> dict[str, list[str]]:
    """The options of every command by its full name, from the command line itself."""
    found = {path: [name for parameter in command.params for name in parameter.opts if name.startswith("--")]}
    if hasattr(command, "list_commands"):
        context = command.context_class(command)
        for name in command.list_commands(context):
            found |= options(command.get_command(context, name), f"{path} {name}")
    return found


def test_every_command_and_option_is_on_the_page() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    sections = dict(
        section.split("`", 1) for section in page.split("\n## `")[1:] for section in section.split("\n### `")
    )
    sections["sagefit"] = page.split("\n## ")[0]
    commands = options(get_command(app))
    assert len(commands) > 20
    assert set(sections) == set(commands)
    for name, flags in commands.items():
        assert [flag for flag in flags if flag not in sections[name]] == []
