"""Where a page is written. A file that is no report of Sagefit is never overwritten."""

from __future__ import annotations

from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.paths import display
from sagefit.reporting.html import GENERATOR

_HEAD = 2048  # bytes that say what a file is


def write(page: str, path: Path) -> None:
    """Write ``page`` to ``path``, in place of a report that is there.

    Raises SagefitError where something else is there, or nothing can be written.
    """
    try:
        if path.exists() and not _is_report(path):
            raise SagefitError(
                f"--out {display(path)}: is there already, and is no report", hint="name another file with --out"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise SagefitError(
            f"--out {display(path)}: {error.strerror or error}", hint="name another file with --out"
        ) from error


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return f'name="generator" content="{GENERATOR}"'.encode() in head
