"""The plan cases: files below ``cases/``, of which the folder says what is planned.

``cases/modules/iam-role/full.yaml`` is the inventory of a plan of ``modules/iam-role`` with the values of
``full.tfvars`` beside it. ``cases/root/`` holds cases of the root module, ``cases/job/`` those of ``job/``, where
values that are missing here are those of ``jobs/``, and an example may need no values at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sagefit.paths import ROOT

FOLDER = Path(__file__).parent / "cases"
# Cases that are kept whole instead, so that nothing of them changes unseen, by the name of their snapshot.
GOLDEN = {
    "minimal-platform": "examples/platforms/minimal/default",
    "regulated-platform": "examples/platforms/regulated/default",
    "five-attempts": "job/five-attempts",
}


@dataclass(frozen=True)
class Case:
    """One module, root or example with values, and what its plan must hold."""

    name: str
    """Path below ``cases/`` without a suffix, which is the test's name too."""

    @property
    def inventory(self) -> Path:
        """The YAML file that says what the plan holds."""
        return FOLDER / f"{self.name}.yaml"

    @property
    def target(self) -> str:
        """The planned folder, from the root of the repository: ``modules/iam-role``, or ``.`` for the root module."""
        folder = self.name.rpartition("/")[0]
        return "." if folder == "root" else folder

    @property
    def module(self) -> str:
        """Name of the module call that plans it."""
        return self.name.replace("/", "-")

    @property
    def values(self) -> str:
        """Text of its tfvars file, empty where it has none."""
        own = FOLDER / f"{self.name}.tfvars"
        path = ROOT / "jobs" / own.name if self.target == "job" and not own.exists() else own
        return path.read_text(encoding="utf-8") if path.exists() else ""


def all_cases() -> list[Case]:
    """Every case there is, in the order of its name."""
    inventories = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.yaml")}
    return [Case(name) for name in sorted(inventories | set(GOLDEN.values()))]


def targets() -> set[str]:
    """What must have a case: the root, every module, every example, and every job file as ``job/NAME``."""
    folders = [ROOT, *(file.parent for file in ROOT.glob("modules/*/main.tf"))]
    folders += [file.parent for file in ROOT.glob("examples/platforms/*/main.tf")]
    jobs = {f"job/{file.stem}" for file in ROOT.glob("jobs/*.yaml")}
    return {str(folder.relative_to(ROOT)) for folder in folders} | jobs
