"""How much of the Python packages the tests run: ``python tests/measure_coverage.py [ARGS OF PYTEST]``.

Every process counts, also those that get an environment of their own (the embedded cloud, the launcher), so the tests
run in a virtual environment whose interpreter always measures. Ends with 1 where fewer than 92 % of all lines, or
fewer than 80 % of a file's, were run. It makes tests that are mostly Python take about twice as long; `make test` does
without.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

from sagefit.paths import ROOT, home

PACKAGES = ROOT / "python"
ALL, EACH = 92, 80  # percent of lines
_WHOLE = ("-n", "auto", "--dist", "loadgroup", "--level", "full", "--provider", "started")  # as make test-full
# They look at the interpreter itself: its memory, its modules, what measures it, or how the suite starts processes.
LEFT_OUT = (
    "tests/launcher/test_launcher_failures.py::test_output_that_is_no_text_does_no_harm",
    "tests/launcher/test_launcher_run.py::test_a_run_that_succeeds",
    "tests/launcher/test_launcher_torch.py::test_it_is_no_part_of_the_script_s_own_python",
    "tests/suite/test_limits.py::test_a_test_that_hangs_is_ended_with_the_stacks_of_its_processes",
    "tests/suite/test_measure_coverage.py::test_a_process_with_an_environment_of_its_own_is_measured",
    "tests/suite/test_own_environment.py::test_it_is_the_same_wherever_the_tests_are_started",
    "tests/suite/test_preloaded.py",
)
# The first runs as `sitecustomize.py` of the training script, the child in an interpreter with torch, and the last two
# with `-I -S`, so that nothing is loaded before them. Their tests run them as they are.
NOT_SEEN = (
    "sagefit_launcher/torch_hook.py",
    "memory/trace/child/*",
    "sagefit_cloud/container_init.py",
    "sagefit_cloud/namespace.py",
)
# Tests make packages of such names, which are gone at the report, hence `ignore_errors`.
# Without `sigterm`: its handler would stand where a process of ours puts its own, which ends with another exit code.
_SETTINGS = """
[run]
branch = true
parallel = true
patch = _exit
data_file = {data}
include =
    {packages}/*
    */python/sagefit/*
    */python/sagefit_cloud/*
    */python/sagefit_launcher/*
    */input/data/sagefit/*

[paths]
packages =
    {packages}
    */python
launcher =
    {packages}/sagefit_launcher
    */input/data/sagefit/launcher.pyz/sagefit_launcher
    */input/data/sagefit/launcher.pyz

[report]
exclude_also = if TYPE_CHECKING:
ignore_errors = true
omit = {omit}
"""


def make_interpreter(folder: Path, settings: Path) -> Path:
    """An environment with the packages of this one, in which every process is measured; its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())
    (packages / "a.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n", "utf-8")
    start = f"import os; os.environ['COVERAGE_PROCESS_START'] = {str(settings)!r}; import coverage"
    command = python.with_name("sagefit")
    command.write_text(f"#!{python}\nfrom sagefit.cli import main\n\nmain()\n", "utf-8")
    command.chmod(0o755)
    (packages / "b.pth").write_text(f"{start}; coverage.process_startup()\n", "utf-8")
    return python


def too_low(report: dict[str, Any]) -> list[str]:
    """What is below the limits in coverage's JSON report."""
    shares = {"all files": report["totals"]} | {name: file["summary"] for name, file in report["files"].items()}
    percent = {
        name: 100 * s["covered_lines"] / s["num_statements"] for name, s in shares.items() if s["num_statements"]
    }
    limits = {name: ALL if name == "all files" else EACH for name in percent}
    return [
        f"{name}: {percent[name]:.1f} % of lines, {limits[name]} % wanted"
        for name in limits
        if percent[name] < limits[name]
    ]


def main(arguments: list[str]) -> int:
    """Run the tests, print the report, and say what is too low."""
    folder = home() / "coverage"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = folder / "settings"
    omit = ", ".join(f"*/{name}" for name in NOT_SEEN)
    settings.write_text(_SETTINGS.format(data=folder / "data" / ".coverage", packages=PACKAGES, omit=omit), "utf-8")
    (folder / "data").mkdir()
    deselect = [f"--deselect={name}" for name in LEFT_OUT]
    tests = [str(make_interpreter(folder / "python", settings)), "-m", "pytest", "-p", "no:cov", *deselect]
    code = subprocess.run([*tests, *(arguments or _WHOLE)], cwd=ROOT, check=False).returncode
    coverage = [sys.executable, "-m", "coverage"]
    found = folder / "report.json"
    for command in (["combine", "-q"], ["report", "--sort=cover"], ["json", "-q", "-o", str(found)]):
        subprocess.run([*coverage, command[0], f"--rcfile={settings}", *command[1:]], cwd=ROOT, check=True)
    low = too_low(json.loads(found.read_text("utf-8")))
    print(*low, sep="\n")
    return code or int(bool(low))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
