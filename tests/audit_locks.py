"""Ask whether something is known against the packages of the lock files; `make lint` does.

pip-audit asks OSV, https://osv.dev, for each package by name and version. Advisories that do not concern Sagefit stand
in ``audit_exceptions.yaml``, each with a reason and for one version. Where OSV does not answer, only the exceptions are
checked, and that is said: lint works without a network.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sagefit.paths import ROOT, display

EXCEPTIONS = ROOT / "tests" / "audit_exceptions.yaml"
OSV = "https://api.osv.dev/v1/query"
_FIELDS = {"advisory", "package", "version", "reason"}
_SECONDS = 10  # for one answer; the first that does not come ends the audit
_Exception = Mapping[str, str]


def lock_files() -> list[Path]:
    """Of Sagefit, of its tests, of checkov, and of what stands for images on the embedded cloud."""
    return sorted([*ROOT.glob("requirements*.lock"), *ROOT.glob("python/sagefit/cloud/images/*.lock")])


def locked(files: Sequence[Path]) -> set[tuple[str, str]]:
    """Names and versions of all packages in lock files."""
    pattern = re.compile(r"^([\w.-]+)==([^\s;\\]+)", re.MULTILINE)
    return {(_normal(name), version) for file in files for name, version in pattern.findall(file.read_text("utf-8"))}


def wrong_exceptions(exceptions: Any, packages: set[tuple[str, str]]) -> Iterator[str]:
    """What is wrong with the list of exceptions, whatever OSV says."""
    if not isinstance(exceptions, list):
        yield "it is no list"
        return
    for number, entry in enumerate(exceptions, start=1):
        if not isinstance(entry, dict) or set(entry) != _FIELDS or not all(map(str, entry.values())):
            yield f"entry {number} has not just {', '.join(sorted(_FIELDS))}"
        elif (_normal(str(entry["package"])), str(entry["version"])) not in packages:
            yield f"{entry['package']} {entry['version']} is in no lock file: remove {entry['advisory']}"


def ask(files: Sequence[Path], osv: str) -> list[dict[str, Any]] | None:
    """What pip-audit reports, a package each; None where OSV does not answer.

    A lock file is asked about by itself, because the same package may have another version in another one. Raises
    RuntimeError with pip-audit's words when it cannot read a file.
    """
    found: list[dict[str, Any]] = []
    for file in files:
        report = _ask(file, osv)
        if report is None:
            return None
        found += [package for package in report if package not in found]
    return found


def _ask(file: Path, osv: str) -> list[dict[str, Any]] | None:
    settings = ["--disable-pip", "--vulnerability-service", "osv", "--osv-url", osv, "--timeout", str(_SECONDS)]
    output = ["--format", "json", "--progress-spinner", "off", "--desc", "off"]
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(file), *settings, *output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
        return found
    if re.search(r"requests\.exceptions\.|ConnectionError|ServiceError", done.stderr):
        return None
    raise RuntimeError(done.stderr.strip() or f"pip-audit ended with exit code {done.returncode}")


def judge(report: Sequence[Mapping[str, Any]], exceptions: Sequence[_Exception]) -> Iterator[str]:
    """What is known against a package and has no exception, and exceptions that nothing needs any more."""
    used = set()
    for package in report:
        for advisory in package.get("vulns", []):
            names = {advisory["id"], *advisory.get("aliases", [])}
            excepted = [
                number
                for number, entry in enumerate(exceptions)
                if entry["advisory"] in names
                and (_normal(entry["package"]), str(entry["version"])) == (_normal(package["name"]), package["version"])
            ]
            used.update(excepted)
            if not excepted:
                mended = ", ".join(advisory.get("fix_versions", [])) or "no version yet"
                yield f"{package['name']} {package['version']}: {', '.join(sorted(names))}; mended in {mended}"
    for number, entry in enumerate(exceptions):
        if number not in used:
            what = f"{entry['package']} {entry['version']}"
            yield f"{what}: nobody says {entry['advisory']} any more: remove the exception"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is known and has no exception; return 1 if there is something, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osv", default=OSV, help="where to ask")
    parser.add_argument("--exceptions", type=Path, default=EXCEPTIONS)
    parser.add_argument("locks", type=Path, nargs="*", help="lock files; all of them without")
    options = parser.parse_args(arguments)
    files = options.locks or lock_files()
    exceptions = yaml.safe_load(options.exceptions.read_text("utf-8"))
    if problems := list(wrong_exceptions(exceptions, locked(files))):
        print("\n".join(f"{display(options.exceptions)}: {problem}" for problem in problems), file=sys.stderr)
        return 1
    report = ask(files, options.osv)
    if report is None:
        print(f"{options.osv} does not answer: nobody was asked what is known against {len(locked(files))} packages")
        return 0
    found = list(judge(report, exceptions))
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print(f"  make lock UPGRADE=1, or write down in {display(EXCEPTIONS)} why it does not matter", file=sys.stderr)
    else:
        print(f"nothing is known against {len(report)} packages but {len(exceptions)} exceptions")
    return 1 if found else 0


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
