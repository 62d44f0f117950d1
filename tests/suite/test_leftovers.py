"""What a session of pytest leaves behind is named and makes it fail, on small sessions that really leave something."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import leftovers
import second_try
from sagefit.processes import running

pytestmark = pytest.mark.of_files(
    *(f"tests/{name}.py" for name in ("leftovers", "limits", "preloaded", "second_try", "suite/test_leftovers")),
    "python/sagefit/processes.py",
    "requirements-dev.lock",
)

HERE = Path(__file__).parents[1]
PROC = Path("/proc/self/io").exists()
CONFTEST = """
from second_try import pytest_collectreport, pytest_runtest_logreport, pytest_sessionfinish
import leftovers
leftovers.GRACE, leftovers.PAUSE = 2, 0.2
pytest_plugins = ["leftovers"]
"""
CLEAN = "def test_it(tmp_path):\n    (tmp_path / 'file').touch()\n"
FAILS = "def test_it(tmp_path):\n    (tmp_path / 'file').touch()\n    assert 1 + 1 == 3\n"
TOUCHES = "pathlib.Path('new').write_text('by a test')\n"
WAITS = """
import os, subprocess, sys

def test_it():
    command = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)  # {mark}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True{more})
    process.stdout.readline()
    process.stdout.close()
    process.returncode = 0  # Python is not to say so
"""
USES = """
import subprocess, sys

WRITE = "open(sys.argv[1], 'wb').write(b'x' * 20_000_000); "

def test_it(tmp_path):
    subprocess.run([sys.executable, "-c", "import sys; " + WRITE, str(tmp_path / "file")], check=True)
    slow = "import sys, time; " + WRITE + "time.sleep(1)"
    leave = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]])"
    subprocess.run([sys.executable, "-c", leave, slow, str(tmp_path / "other")], check=True)
    use = "held = b'x' * 300_000_000; time.sleep(2)"
    subprocess.run([sys.executable, "-c", "import time; " + use], check=True)
"""
WORKS = """
import subprocess, sys

def test_it():
    work = "import time\\nwhile time.process_time() < 1: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
"""
COST = r"this session wrote (\d+\.\d\d) GB and had at most (\d+\.\d\d) GB of memory in use"


@dataclass
class Project:
    """A checkout with a test, and a temporary directory of its own."""

    root: Path
    temporary: Path

    def git(self, *arguments: str) -> None:
        """Run Git in the checkout."""
        name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *name, *arguments], cwd=self.root, check=True, capture_output=True)

    def write(self, tests: str) -> None:
        """Write the tests, and commit what is there."""
        (self.root / "test_it.py").write_text(tests)
        if (self.root / ".git").is_dir():
            self.git("add", ".")
            self.git("commit", "-q", "--allow-empty", "-m", "tests")

    def run(self, tests: str, *options: str, **environment: str) -> tuple[int, str]:
        """The exit code and the output of a session on these tests."""
        self.write(tests)
        return self.session(*options, **environment)

    def session(self, *options: str, **environment: str) -> tuple[int, str]:
        """The same, with the tests that are there."""
        foreign = ("PYTEST", "COV", second_try.VARIABLE)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
            cwd=self.root,
            env=kept | {"PYTHONPATH": str(HERE), "TMPDIR": str(self.temporary)} | environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout

    def folders(self) -> list[Path]:
        """What lies in the temporary directory."""
        return list(self.temporary.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Project:
    """A project that is no checkout."""
    made = Project(tmp_path / "project", tmp_path / "t")
    made.root.mkdir()
    made.temporary.mkdir()
    (made.root / "conftest.py").write_text(CONFTEST)
    (made.root / "pytest.ini").write_text("[pytest]\ntestpaths = .\n")
    return made


@pytest.fixture
def project(folder: Project) -> Project:
    """The same as a checkout."""
    (folder.root / ".gitignore").write_text("__pycache__/\nignored\n")
    (folder.root / "tracked").write_text("before\n")
    folder.git("init", "-q")
    return folder


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A word of the command line of what is left; all with it end."""
    word = f"left by {tmp_path}"
    yield word
    for process in with_word(word):
        process.kill()


def with_word(word: str) -> list[psutil.Process]:
    found = []
    for process in running():
        with contextlib.suppress(psutil.Error):
            if word in " ".join(process.cmdline()):
                found.append(process)
    return found


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_session_that_leaves_nothing_is_green(workers: str, project: Project) -> None:
    code, said = project.run(CLEAN, "-n", workers)
    assert code == 0, said
    assert "left behind" not in said
    assert "stay" not in said
    assert bool(re.search(COST, said)) == PROC
    assert project.folders() == []


@pytest.mark.parametrize("workers", ["0", "1"])
def test_files_in_the_checkout_are_named(workers: str, project: Project) -> None:
    (project.root / "mine").mkdir()
    script = "import pathlib\nfor name in ('tracked', 'mine/new', 'ignored', 'test_it.py'):\n"
    script += "    path = pathlib.Path(name)\n    path.write_text(path.read_text() if path.exists() else 'after')\n"
    script += "pathlib.Path('tracked').write_text('after')"
    code, said = project.run(f"def test_it():\n    exec({script!r})\n", "-n", workers)
    assert code == 1
    assert "1 passed" in said
    assert "left behind" in said
    assert "changed or new in the checkout:\n  mine/new\n  tracked\n  -> let the test work on a copy" in said


def test_what_was_changed_before_is_no_leftover(project: Project) -> None:
    project.write("import pathlib\ndef test_it():\n    if pathlib.Path('go').exists():\n        " + TOUCHES)
    (project.root / "tracked").write_text("by somebody")
    (project.root / "new").write_text("by somebody")
    assert project.session()[0] == 0
    (project.root / "go").touch()
    code, said = project.session()
    assert code == 1
    assert "changed or new in the checkout:\n  new\n  ->" in said


def test_what_was_asked_to_be_written_is_no_leftover(project: Project) -> None:
    script = "import pathlib\ndef test_it():\n    pathlib.Path('new').touch()\n"
    assert project.run(script, "--snapshot-update")[0] == 0
    (project.root / "new").unlink()
    assert project.run(script)[0] == 1


def test_outside_of_git_the_checkout_is_not_judged(folder: Project) -> None:
    code, said = folder.run("import pathlib\ndef test_it():\n    pathlib.Path('new').touch()\n")
    assert code == 0, said
    assert f"{folder.root} is no checkout of Git: what changed in it is not judged" in said


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_process_is_named_and_ended(workers: str, project: Project, mark: str) -> None:
    code, said = project.run(WAITS.format(mark=mark, more=""), "-n", workers)
    assert code == 1
    assert "1 passed" in said
    (line,) = [line for line in said.splitlines() if mark in line]
    assert re.match(r"  \d+: \S+ -c import time; .* \(of test_it\.py::test_it \(call\)\)$", line)
    assert "processes, ended now:\n" in said
    assert "-> end each where it was started" in said
    assert with_word(mark) == []


def test_a_process_that_left_its_parent_is_known_by_its_temporary_directory(project: Project, mark: str) -> None:
    """As the embedded cloud: started by a process that has ended, with little of its environment."""
    tests = WAITS.format(mark=mark, more=", env={'TMPDIR': os.environ['TMPDIR'] + '/t'}")
    body = tests.partition("def test_it():\n")[2].replace("    ", "")
    tests = f"import subprocess, sys\ndef test_it():\n    script = 'import os, subprocess, sys\\n' + {body!r}\n"
    tests += "    subprocess.run([sys.executable, '-c', script], check=True)\n"
    code, said = project.run(tests, "-n", "0")
    assert (code, said.count(mark)) == (1, 1), said
    assert "(of " not in said
    assert with_word(mark) == []


def test_a_process_that_ends_soon_is_waited_for(project: Project, mark: str) -> None:
    soon = WAITS.format(mark=mark, more="").replace("sleep(600)", "sleep(0.5)")
    assert project.run(soon)[0] == 0


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_lies_in_the_temporary_directory_is_named(workers: str, project: Project) -> None:
    code, said = project.run("import tempfile\ndef test_it():\n    tempfile.mkdtemp(prefix='mine-')\n", "-n", workers)
    assert code == 1
    assert re.search(r"^in the temporary directory:\n  mine-\w+\n  -> use tmp_path", said, re.MULTILINE)
    (kept,) = project.folders()
    assert f"its temporary files stay: {kept}\n" in said
    assert list(kept.glob("mine-*"))


@pytest.mark.parametrize("workers", ["0", "1"])
def test_the_files_of_a_session_that_failed_stay(workers: str, project: Project) -> None:
    code, said = project.run(FAILS, "-n", workers)
    assert code == 1
    assert "left behind" not in said
    (kept,) = project.folders()
    assert f"the session failed, so its temporary files stay: {kept}\n" in said
    assert list(kept.rglob("file"))
    project.run(CLEAN)
    assert project.folders() == [kept]


@pytest.mark.parametrize("options", [["no_such.py"], ["--no-such-option"], ["-k", "nothing"], ["--help"]])
def test_a_session_without_tests_keeps_nothing(options: list[str], project: Project) -> None:
    project.run(CLEAN, *options)
    assert project.folders() == []


def test_pytests_own_folder_may_be_elsewhere(project: Project, tmp_path: Path) -> None:
    assert project.run(CLEAN, f"--basetemp={tmp_path / 'elsewhere'}")[0] == 0
    assert list((tmp_path / "elsewhere").rglob("file"))


def test_the_last_folders_are_kept_and_those_in_use(tmp_path: Path) -> None:
    for number in range(6):
        (made := tmp_path / f"sf-{number}").mkdir()
        if number:
            (made / "lock").touch()
        os.utime(made, (number, number))
    (tmp_path / "sf-file").touch()
    with (tmp_path / "sf-1" / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        leftovers.forget(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"sf-file", "sf-0", "sf-1", "sf-4", "sf-5"}


def test_what_a_session_costs_is_said(project: Project) -> None:
    """Children count in whichever process of the session they were started, and those that have left their parents."""
    if not PROC:
        assert not re.search(COST, project.run(CLEAN)[1])
        return
    before = psutil.Process().io_counters().write_bytes
    big = project.temporary / "big"
    subprocess.run([sys.executable, "-c", f"open({str(big)!r}, 'wb').write(b'x' * 20_000_000)"], check=True)
    wrote = psutil.Process().io_counters().write_bytes - before  # nothing, where that is in memory
    big.unlink()
    code, said = project.run(USES, "-n", "1")
    assert code == 0, said
    found = re.search(COST, said)
    assert found
    assert float(found[1]) >= 2 * (wrote // 10_000_000) / 100
    assert 0.3 < float(found[2]) < 1


def test_limits_are_those_of_the_whole_suite_and_warn(project: Project) -> None:
    with (project.root / "conftest.py").open("a") as file:
        file.write("leftovers.MOST_WRITTEN, leftovers.MOST_MEMORY = -1, -1\n")
        file.write("leftovers.MOST_WORK, leftovers.PAUSE = 0, 0.05\n")
    code, said = project.run(WORKS, "-n", "1")
    assert code == 0
    test = r"of test_it.py::test_it \(call\)\)"
    for what in (
        r"wrote \d.\d\d GB, more than -1e-09 GB",
        r"had in memory \d.\d\d GB, more than -1e-09 GB; \d.\d\d GB of it: \d+: .*",
        rf"kept a processor busy for \d+ s, more than 0 s, with \d+: .*process_time.* \({test}",
    ):
        assert bool(re.search(rf"^warning: the suite {what}$", said, re.MULTILINE)) == PROC, said
    for chosen in (["-k", "it"], ["test_it.py"], ["-m", "not slow"]):
        code, said = project.run(CLEAN, *chosen)
        assert (code, "warning: the suite" in said, bool(re.search(COST, said))) == (0, False, PROC)


def test_a_second_try_mends_no_leftover(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "failures.json"
    tests = f"import pathlib\n{CLEAN}    pathlib.Path('new').touch()\n"
    assert project.run(tests, **{second_try.VARIABLE: str(record)})[0] == 1
    assert second_try.main([str(record)]) == 1
    assert capsys.readouterr().out == "red: the tests left something behind: new\n"
