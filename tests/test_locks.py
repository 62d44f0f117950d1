"""What a lock file lists is what is installed, by every pip that a supported Python may bring, also in a later year."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sagefit import environments
from sagefit.errors import SagefitError
from sagefit.paths import ROOT

#: Of Python 3.10.0, the first that is supported.
OLDEST_PIP = "pip==21.2.3 --hash=sha256:895df6014c2f02f9d278a8ad6e31cdfd312952b4a93c3068d0556964f4490057"
IMAGES = ROOT / "python" / "sagefit" / "cloud" / "images"
LOCKS = [ROOT / "requirements-checkov.lock", *sorted(IMAGES.glob("*.lock"))]
OWN_LOCKS = [ROOT / "requirements.lock", ROOT / "requirements-dev.lock"]
SMALLEST = "sklearn"


def level(lock: Path) -> list[pytest.MarkDecorator]:
    """Locks are installed alike; the smallest stands for the others."""
    witness = f"tests/test_locks.py::test_an_environment_holds_what_its_lock_lists[{SMALLEST}]"
    return [] if lock.stem == SMALLEST else [pytest.mark.full(witness=witness)]


def pins(*locks: Path) -> dict[str, set[str]]:
    """The versions that lock files list, by package; a package may have one for each kind of machine."""
    found: dict[str, set[str]] = {}
    for lock in locks:
        for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(normal(name), set()).add(version)
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a newer release of everything that is locked."""
    folder = tmp_path_factory.mktemp("later")
    for name in pins(*LOCKS, *OWN_LOCKS):
        start = f"{name.replace('-', '_')}-9999"
        with zipfile.ZipFile(folder / f"{start}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{start}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 9999\n")
            wheel.writestr(f"{start}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{start}.dist-info/RECORD", "")
    return folder


def with_oldest_pip(folder: Path) -> Path:
    """A fresh environment."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    lock = folder.with_name("pip.lock")
    lock.write_text(OLDEST_PIP + "\n", encoding="utf-8")
    environments.install(folder, *environments.LOCKED, "-r", str(lock))
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that nobody changes."""
    return with_oldest_pip(tmp_path_factory.mktemp("old") / "venv")


def installed(folder: Path) -> dict[str, str]:
    """Name and version of all that an environment holds."""
    listing = [str(folder / "bin" / "python"), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    done = subprocess.run(listing, check=True, capture_output=True, text=True)
    return {normal(row["name"]): row["version"] for row in json.loads(done.stdout)}


@pytest.mark.parametrize("lock", [pytest.param(lock, id=lock.stem, marks=level(lock)) for lock in LOCKS])
def test_an_environment_holds_what_its_lock_lists(
    lock: Path, old: Path, later: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(later))
    monkeypatch.setenv("PIP_NO_COMPILE", "1")  # half of the time
    pip = list(environments.packages(old).glob("pip*"))
    monkeypatch.setattr(environments, "_own_pip", lambda: pip)
    environments.create(tmp_path / "made", lock)
    found = installed(tmp_path / "made")
    assert found.pop("pip") == "21.2.3"
    locked = pins(lock)
    assert found
    assert {name: version for name, version in found.items() if version not in locked.get(name, ())} == {}


@pytest.mark.full(witness=f"tests/test_locks.py::test_an_environment_holds_what_its_lock_lists[{SMALLEST}]")
@pytest.mark.parametrize(
    ("stamp", "lock", "own"),
    [(".installed", OWN_LOCKS[0], {"sagefit"}), (".dev", OWN_LOCKS[1], set())],
    ids=["users", "tests"],
)
def test_make_installs_what_its_locks_list(stamp: str, lock: Path, own: set[str], later: Path, tmp_path: Path) -> None:
    """The recipes of the Makefile themselves; pip is the oldest for each of them."""
    folder = with_oldest_pip(tmp_path / "venv")
    bundled = set(installed(folder))
    if stamp == ".dev":
        (folder / ".installed").touch()
    done = subprocess.run(
        ["make", f"VENV={folder}", str(folder / stamp)],
        cwd=ROOT,
        env=os.environ | {"PIP_FIND_LINKS": str(later), "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    locked, found = pins(lock), installed(folder)
    assert found["pip"] in locked["pip"]  # from here on the same everywhere
    assert own <= set(found)
    others = {name for name, version in found.items() if version not in locked.get(name, ())}
    assert others <= (bundled - {"pip"}) | own
    assert "9999" not in found.values()


def test_a_lock_that_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "broken.lock"
    jinja = re.search(r"^jinja2==.*(?:\n    .*)+", OWN_LOCKS[0].read_text(encoding="utf-8"), re.MULTILINE)
    assert jinja
    lock.write_text(jinja[0] + "\n", encoding="utf-8")
    with pytest.raises(SagefitError, match=r"broken\.lock does not fit together: jinja2 .* requires markupsafe"):
        environments.create(tmp_path / "made", lock)
