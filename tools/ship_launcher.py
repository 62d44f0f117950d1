"""Writes the launcher that jobs ship: ``make launcher``, after a change of it or of the table of failures.

``python3 launcher.pyz`` starts it: the package ``sagefit_launcher`` and the table beside it in one archive. Nothing in
it is compressed and no file has a date, so the same sources make the same bytes on every machine, and a Python without
zlib can read it.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "sagefit_launcher"
MODULE = ROOT / "modules" / "training-job"
SHIPPED = MODULE / "launcher" / "launcher.pyz"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest date of the format


def contents(package: Path = PACKAGE) -> dict[str, bytes]:
    """What is in the archive: names and bytes. What starts it lies above the package."""
    found = {f"{PACKAGE.name}/{path.name}": path.read_bytes() for path in package.glob("*.py")}
    found["__main__.py"] = found.pop(f"{PACKAGE.name}/__main__.py")
    found[f"{PACKAGE.name}/failures.json"] = (MODULE / "failures.json").read_bytes()
    return found


def write(target: Path, files: dict[str, bytes]) -> None:
    """Write the archive."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.create_system = 3  # Unix, wherever it is written
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)


if __name__ == "__main__":
    write(SHIPPED, contents())
    sys.stdout.write(f"{SHIPPED.relative_to(ROOT)}: {SHIPPED.stat().st_size:,} bytes\n")
