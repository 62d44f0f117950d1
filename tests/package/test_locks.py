"""What a lock file lists is what is installed, by every pip that a supported Python may bring, also in a later year."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sagefit import environments
from sagefit.cloud import images
from sagefit.errors import SagefitError
from sagefit.paths import ROOT

#: Of Python 3.10.0, the first that is supported.
OLDEST_PIP = "pip==21.2.3 --hash=sha256:895df6014c2f02f9d278a8ad6e31cdfd312952b4a93c3068d0556964f4490057"
CHECKOV = ROOT / "requirements-checkov.lock"
IMAGES = sorted(path.stem for path in images.LISTS.glob("*.in") if "-" not in path.stem)
LOCKS = [CHECKOV, *images.LISTS.glob("*.lock")]
OWN_LOCKS = [ROOT / "requirements.lock", ROOT / "requirements-dev.lock"]
SMALLEST = "sklearn"
OF_FILES = pytest.mark.of_files(
    *(
        "python/sagefit/cloud/images",
        "python/sagefit/environments.py",
        "requirements-checkov.lock",
        "tests/package/test_locks.py",
    )
)


def level(name: str) -> list[pytest.MarkDecorator]:
    """Locks are installed alike; the smallest stands for the others."""
    witness = f"tests/package/test_locks.py::test_an_environment_holds_what_its_locks_list[{SMALLEST}]"
    return [] if name == SMALLEST else [pytest.mark.full(witness=witness)]


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


@OF_FILES
@pytest.mark.parametrize("name", [pytest.param(name, marks=level(name)) for name in ("checkov", *IMAGES)])
def test_an_environment_holds_what_its_locks_list(
    name: str, old: Path, later: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", f"{os.environ.get('PIP_FIND_LINKS', '')} {later}".strip())
    monkeypatch.setenv("PIP_NO_COMPILE", "1")  # half of the time
    monkeypatch.setenv("SAGEFIT_IMAGES", str(tmp_path))
    pip = list(environments.packages(old).glob("pip*"))
    monkeypatch.setattr(environments, "_own_pip", lambda: pip)
    if name == "checkov":
        environments.create(made := tmp_path / "made", CHECKOV)
        locked = pins(CHECKOV)
    else:
        made = images.environment(name)
        parts = [part for part in (name, images.ON.get(name)) if part]
        locked = pins(*(lock for part in parts for lock in images.LISTS.glob(f"{part}*.lock")))
    found = installed(made)
    assert found.pop("pip") == "21.2.3"
    assert found
    assert {name: version for name, version in found.items() if version not in locked.get(name, ())} == {}


def wheel_of(folder: Path, version: str) -> str:
    """Put a package into a folder; its line in a lock file."""
    wheel = folder / f"part-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        start = f"part-{version}.dist-info"
        file.writestr(f"{start}/METADATA", f"Metadata-Version: 2.1\nName: part\nVersion: {version}\n")
        file.writestr(f"{start}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{start}/RECORD", "")
    return f"part=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[Path]]:
    """An index with two builds of one package, and a lock for each; the one for the CPU comes first."""
    offered = tmp_path / "offered"
    offered.mkdir()
    locks = [tmp_path / "cpu.lock", tmp_path / "usual.lock"]
    for lock, version in zip(locks, ("1.0+cpu", "1.0"), strict=True):
        lock.write_text(wheel_of(offered, version), encoding="utf-8")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(offered))
    return offered, locks


@OF_FILES
@pytest.mark.parametrize("gone", ["", "1.0", "1.0+cpu"])
def test_the_first_build_that_is_offered_is_taken(gone: str, builds: tuple[Path, list[Path]], tmp_path: Path) -> None:
    offered, locks = builds
    for wheel in offered.glob(f"part-{gone}-*"):
        wheel.unlink()
    (tmp_path / "rest.lock").touch()
    environments.create(tmp_path / "made", tmp_path / "rest.lock", one_of=locks)
    assert installed(tmp_path / "made")["part"] == ("1.0" if gone == "1.0+cpu" else "1.0+cpu")


@OF_FILES
@pytest.mark.parametrize("version", ["1.0", "1.0+cpu"])
def test_a_build_that_is_another_than_the_locked_one_is_not_installed(
    version: str, builds: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    offered, locks = builds
    with zipfile.ZipFile(offered / f"part-{version}-py3-none-any.whl", "a") as wheel:
        wheel.writestr("part.py", "print('changed')")
    (tmp_path / "rest.lock").touch()
    if version == "1.0":
        (offered / "part-1.0+cpu-py3-none-any.whl").unlink()
    with pytest.raises(SagefitError, match="DO NOT MATCH THE HASHES"):
        environments.create(tmp_path / "made", tmp_path / "rest.lock", one_of=locks)
    assert not list(environments.packages(tmp_path / "made").glob("part*"))


@pytest.mark.full(witness=f"tests/package/test_locks.py::test_an_environment_holds_what_its_locks_list[{SMALLEST}]")
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
