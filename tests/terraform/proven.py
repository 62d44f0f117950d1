"""Which modules were shown to have a run for each rule that fires it alone, and have not changed since.

To fire each of 400 rules alone takes minutes, and shows the same while neither rules nor runs change. So outside of
the level ``full`` it is done for modules that changed, and for one run of each file of the others. ``proven.json`` has
the digest of each module's files, and of Terraform's version, with which it was done last; ``--write-proven`` keeps
those of the modules that pass.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from sagefit.paths import ROOT, home
from sagefit.toolchain import terraform_binary, terraform_version

TEST = "test_every_rule_has_a_run_that_fires_it_alone"
_HERE = "tests/terraform"
_KEPT = ROOT / _HERE / "proven.json"
_SOURCE = re.compile(r'^ *source *= *"(\.{1,2}/[^"]*)"', re.MULTILINE)
_PASSED: set[str] = set()


def is_proven(subject: str) -> bool:
    """Whether a module, by its path from the top, is as it was when all its rules were fired."""
    return _kept().get(subject) == digest(subject)


def decided_by(*subjects: str) -> list[str]:
    """What decides what a plan of these modules is, by its path from the top: the modules, and what they call."""
    folders = sorted({folder for subject in subjects for folder in _called(ROOT / subject)})
    own = ["*.tf" if folder == ROOT else str(folder.relative_to(ROOT)) for folder in folders]
    return [*own, f"{_HERE}/ru*.py"]


def digest(subject: str, root: Path = ROOT) -> str:
    """A digest of all that decides which rules fire: the module, what it calls, its runs, and Terraform."""
    found = hashlib.sha256(str(terraform_version(terraform_binary(home()))).encode())
    here = root / _HERE
    files = {path for folder in _called(root / subject) for path in _files(folder, whole=folder != root)}
    files |= {*here.glob("*.hcl"), *here.glob("ru*.py")}
    for path in sorted(files):
        found.update(f"{os.path.relpath(path, root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _called(folder: Path) -> set[Path]:
    """A module's folder, and those of the modules that it calls."""
    found, left = set(), [folder.resolve()]
    while left:
        if (folder := left.pop()) not in found:
            found.add(folder)
            texts = [file.read_text(encoding="utf-8") for file in folder.glob("*.tf")]
            left += [(folder / source).resolve() for text in texts for source in _SOURCE.findall(text)]
    return found


def _files(folder: Path, *, whole: bool) -> list[Path]:
    names = folder.rglob("*") if whole else folder.glob("*.tf")
    shown = (path for path in names if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    return [path for path in shown if path.is_file()]


def _kept() -> dict[str, str]:
    return dict(json.loads(_KEPT.read_text(encoding="utf-8"))) if _KEPT.exists() else {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what passed."""
    found = re.search(rf"::{TEST}\[([^\]]+)\]", report.nodeid)
    if found and report.when == "call" and report.passed:
        _PASSED.add(found[1])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the digests where that is asked for."""
    if config.option.write_proven and config.option.level == "full" and "PYTEST_XDIST_WORKER" not in os.environ:
        kept = _kept() | {subject: digest(subject) for subject in _PASSED}
        _KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
