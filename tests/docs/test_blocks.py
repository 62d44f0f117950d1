"""Every fenced block of every page is tested, or says why not; see `docs.pages` for the rules."""

from __future__ import annotations

import ast
import doctest
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml

from docs.pages import Block, blocks, directive, pages
from docs.shell import programs
from sagefit.cloud import faults
from sagefit.job import load_job
from sagefit.job.source import read
from sagefit.paths import ROOT
from sagefit.planning import plan


def sandbox(folder: Path) -> Path:
    """A folder for job files at the same distance from the examples as ``jobs/``, with code of the reader's own."""
    (folder / "jobs" / "src").mkdir(parents=True)
    (folder / "jobs" / "src" / "train.py").write_text("", encoding="utf-8")
    for name in ("examples", "modules"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".terraform*", "__pycache__"))
    return folder / "jobs"


def laid_over(whole: Any, part: Any) -> Any:
    """Mappings are merged, field by field; anything else replaces what was there."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return whole | {key: laid_over(whole.get(key), value) for key, value in part.items()}
    return part


def job_files(folder: Path, block: Block) -> None:
    """Load and render the job files of a block; with a file to merge them into, they are parts of one."""
    path = sandbox(folder) / "documented.yaml"
    for document in re.split(r"^---$", block.text, flags=re.MULTILINE):
        path.write_text(document, encoding="utf-8")
        if block.what:
            whole = yaml.safe_load((ROOT / block.what).read_text(encoding="utf-8"))
            part, _ = read(path)
            path.write_text(yaml.safe_dump(laid_over(whole, part), sort_keys=False), encoding="utf-8")
        assert "\nname " in plan(load_job(str(path))).text


def faults_file(folder: Path, block: Block) -> None:
    path = folder / "faults.yaml"
    path.write_text(block.text, encoding="utf-8")
    assert faults.load(path)


def yaml_parses(_: Path, block: Block) -> None:
    assert list(yaml.safe_load_all(block.text))


def json_parses(_: Path, block: Block) -> None:
    assert json.loads(block.text)


def hcl_parses(_: Path, block: Block) -> None:
    assert hcl2.loads(block.text)


def compiles(_: Path, block: Block) -> None:
    assert ast.parse(block.text).body


def gives_what_it_says(_: Path, block: Block) -> None:
    tried = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(block.text, {}, str(block), None, None))
    assert tried.attempted
    assert not tried.failed


HERE: dict[tuple[str, str], Callable[[Path, Block], None]] = {
    ("yaml", ""): job_files,
    ("yaml", "merged into"): job_files,
    ("yaml", "as faults"): faults_file,
    ("yaml", "parsed"): yaml_parses,
    ("json", ""): json_parses,
    ("json", "parsed"): json_parses,
    ("hcl", "parsed"): hcl_parses,
    ("python", ""): compiles,
    ("pycon", ""): gives_what_it_says,
}
IN_OTHER_FILES = [("hcl", ""), ("hcl", "as tfvars"), ("shell", ""), ("console", "")]
BLOCKS = [block for page in pages() for block in blocks(page)]


def complaint(block: Block) -> str | None:
    """What is wrong with the treatment of a block."""
    treatment = (block.language, block.way)
    if block.way in ("skip", "parsed") and len(block.what.split()) < 3:
        return "the comment gives no reason"
    if block.way == "run by":
        tests = ROOT / block.what
        reads = tests.is_file() and f'{block.page.name}"' in tests.read_text(encoding="utf-8")
        return None if reads else f"{block.what} does not read {block.page.name}"
    if block.way == "skip":
        return None
    if treatment in (("text", ""), ("", "")):
        found = ", ".join(programs(block.text))
        return f"holds commands ({found}), so its language is shell or console" if found else None
    if treatment not in HERE and treatment not in IN_OTHER_FILES:
        return f"no treatment for {block.language!r} {block.way} {block.what}: see tests/docs/pages.py"
    return None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_has_a_treatment(page: Path) -> None:
    assert [f"{block.place}: {said}" for block in blocks(page) if (said := complaint(block))] == []


@pytest.mark.parametrize(
    ("language", "text", "comment", "says"),
    [
        ("rust", "fn main() {}", "", "no treatment for 'rust'"),
        ("text", "$ make job", "", "holds commands (make)"),
        ("", "terraform apply", "", "holds commands (terraform)"),
        ("shell", "rm -rf /", "<!-- test: skip: no -->", "no reason"),
        ("shell", "make job", "<!-- test: ignore -->", "no treatment for 'shell' unknown ignore"),
        ("shell", "make job", "<!-- test: run by tests/nowhere.py -->", "does not read"),
        ("python", "1", "<!-- test: as faults -->", "no treatment for 'python' as faults"),
    ],
)
def test_a_block_without_a_treatment_is_found(language: str, text: str, comment: str, says: str) -> None:
    found = complaint(Block(ROOT / "README.md", 1, 1, language, text, *directive(comment)))
    assert found
    assert says in found


@pytest.mark.parametrize("block", [block for block in BLOCKS if (block.language, block.way) in HERE], ids=str)
def test_block(tmp_path: Path, block: Block) -> None:
    HERE[block.language, block.way](tmp_path, block)
