"""Which files decide what a plan of a module shows, for tests that are left out while these do not change.

To fire each of 400 rules alone takes minutes, and shows the same while neither rules nor runs change.
"""

from __future__ import annotations

import re
from pathlib import Path

from sagefit.paths import ROOT

_SOURCE = re.compile(r'^ *source *= *"(\.{1,2}/[^"]*)"', re.MULTILINE)
# A plan names these files of a module, and reads nothing of what is in them.
NEVER_READ = ("modules/training-job/launcher/launcher.pyz",)


def of_a_plan(*subjects: str) -> list[str]:
    """What decides what a plan of these modules is, by its path from the top: the modules, and what they call."""
    folders = sorted({folder for subject in subjects for folder in _called(ROOT / subject)})
    own = ["*.tf" if folder == ROOT else str(folder.relative_to(ROOT)) for folder in folders]
    left_out = [f"!{file}" for file in NEVER_READ if any(file.startswith(f"{each}/") for each in own)]
    return [*own, *left_out, "tests/terraform/ru*.py"]


def of_its_rules(subject: str) -> list[str]:
    """What decides which rules of a module fire: what decides its plan, and the runs of all files."""
    return [*of_a_plan(subject), "tests/terraform/*.hcl"]


def _called(folder: Path) -> set[Path]:
    """A module's folder, and those of the modules that it calls."""
    found, left = set(), [folder.resolve()]
    while left:
        if (folder := left.pop()) not in found:
            found.add(folder)
            texts = [file.read_text(encoding="utf-8") for file in folder.glob("*.tf")]
            left += [(folder / source).resolve() for text in texts for source in _SOURCE.findall(text)]
    return found
