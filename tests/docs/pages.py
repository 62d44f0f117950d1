"""The pages of this repository, their fenced blocks, and what the tests do with each block.

``docs/cli.md`` is left out: it is made from the command line itself, and compared with it.

| language | a block is |
|---|---|
| ``hcl`` | formatted as ``terraform fmt`` does it, and planned with the real provider on the embedded cloud |
| ``yaml`` | job files, parted by ``---``: each is loaded and rendered |
| ``shell`` | commands, one a line |
| ``console`` | commands after ``$`` with what they print, which is compared; without ``$`` the same as ``shell`` |
| ``json`` | parsed |
| ``python`` | compiled |
| ``pycon`` | typed into Python, and what it prints is compared |
| ``text`` or none | a drawing, and holds no command |

A comment on the line before a block, or with an empty line between, says otherwise:

| comment | the block is |
|---|---|
| ``<!-- test: merged into jobs/NAME.yaml -->`` | fields laid over those of this job file, loaded and rendered |
| ``<!-- test: as faults -->`` | a faults file of the embedded cloud, and loaded as one |
| ``<!-- test: as tfvars -->`` | variables of the root module, and planned with it |
| ``<!-- test: parsed: WHY -->`` | only parsed |
| ``<!-- test: run by tests/PATH.py -->`` | run by these tests, which read it from the page |
| ``<!-- test: skip: WHY -->`` | left alone |
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from sagefit.paths import ROOT

WAYS = ("merged into", "as faults", "as tfvars", "parsed:", "run by", "skip:")

ALIASES = {"sh": "shell", "bash": "shell", "yml": "yaml", "terraform": "hcl"}
MADE = {ROOT / "docs" / "cli.md"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``way`` and ``what`` are those of the comment before it."""

    page: Path
    number: int
    line: int
    language: str
    text: str
    way: str = ""
    what: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}#{self.number}"

    @property
    def place(self) -> str:
        """Where to look for it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown file that Git knows, but those that are data of tests."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(filter(None, listed.stdout.split("\0")))
    return [ROOT / name for name in names if "/tests/" not in f"/{name}" and (ROOT / name).is_file()]


@cache
def tokens(page: Path) -> list[Token]:
    """The page as a list of CommonMark's tokens, with tables."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, each with the comment before it."""
    found: list[Block] = []
    before = ""
    for token in tokens(page) if page not in MADE else []:
        if token.type == "fence":
            way, what = directive(before)
            line = token.map[0] + 1 if token.map else 0
            language = ALIASES.get(token.info.strip(), token.info.strip())
            found.append(Block(page, len(found) + 1, line, language, token.content, way, what))
        before = token.content if token.type == "html_block" else ""
    return found


def directive(comment: str) -> tuple[str, str]:
    """Way and object of a comment such as ``<!-- test: skip: WHY -->``; a comment that is none says nothing."""
    if "test:" not in comment:
        return "", ""
    text = comment.strip().removeprefix("<!-- test:").removesuffix("-->").strip()
    for way in WAYS:
        if text.startswith(way):
            return way.rstrip(":"), text.removeprefix(way).strip()
    return "unknown", text


def all_blocks(*languages: str, way: str | None = "") -> list[Block]:
    """Blocks of all pages in these languages, treated in one way; the language's own by default, None for any."""
    return [
        block for page in pages() for block in blocks(page) if block.language in languages and way in (None, block.way)
    ]
