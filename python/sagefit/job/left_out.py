"""Patterns that leave files out, as Terraform's ``fileset`` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

ALWAYS_EXCLUDED = (
    "**/.git/**",
    "**/.venv/**",
    "**/.terraform/**",
    "**/.ipynb_checkpoints/**",
    "**/__pycache__/**",
    "**/.mypy_cache/**",
    "**/.pytest_cache/**",
    "**/.ruff_cache/**",
    "**/*.pyc",
    "**/*.pyo",
    "**/*.tfstate",
    "**/.DS_Store",
)
"""Of code, beside what Sagefit renders of a job file; ``modules/training-job/objects.tf`` leaves out the same."""


class LeftOut:
    """The files and folders that patterns exclude. A pattern that Terraform does not understand excludes nothing."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._files, self._folders = [], []
        for pattern in patterns:
            with suppress(re.error):
                self._files.append(_compiled(pattern))
                if pattern.endswith("/**"):
                    self._folders.append(_compiled(pattern[:-3]))

    def file(self, name: str) -> bool:
        """Whether the file of this path is not uploaded."""
        return any(pattern.fullmatch(name) for pattern in self._files)

    def folder(self, name: str) -> bool:
        """Whether nothing below it is uploaded."""
        return any(pattern.fullmatch(name) for pattern in self._folders)


def rendered(job: str) -> str:
    """The name of what Sagefit renders of the job of this name: where job file and code lie together, it is no code."""
    return f"{job}.tfvars"


def always_left_out(job: str) -> tuple[str, ...]:
    """What code of the job of this name never holds."""
    return (*ALWAYS_EXCLUDED, f"**/{rendered(job)}")


def pattern_of(path: str) -> str:
    """What leaves out this path and no other."""
    return re.sub(r"[\\*?\[{]", r"\\\g<0>", path)


@lru_cache(maxsize=1024)  # most jobs leave out the same
def _compiled(glob: str) -> re.Pattern[str]:
    return re.compile(_regex(glob))


def _regex(glob: str) -> str:
    """A pattern of Terraform's ``fileset`` as a regular expression."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    inside = 0
    said = []
    for piece in re.findall(r"\*\*/|\*\*|\[[^]]+\]|\\.|.", glob):
        inside += {"{": 1, "}": -1}.get(piece, 0)
        if piece in parts and (piece != "," or inside):
            said.append(parts[piece])
        else:
            said.append(_class(piece) if piece[0] == "[" and len(piece) > 1 else re.escape(piece[-1]))
    return "".join(said)


def _class(piece: str) -> str:
    """``[!a-z]`` as a regular expression, with characters escaped that would mean sets there."""
    inside = re.sub(r"[\[&|~]|-(?=-)", r"\\\g<0>", piece[1:-1])
    return f"[{'^' + inside[1:] if inside[0] == '!' else inside}]"
