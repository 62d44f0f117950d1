"""Nothing that a script does can hold the launcher, or lead it to files outside of ``/opt/ml``."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from launcher.conftest import LAUNCHER, Container, ship
from security.conftest import note

CANARY = "not of this job"
REPORT = "output/data/sagefit.json"
#: Below ``/opt/ml``; ``torch`` is the folder of the launcher's own hook, which the script has in its environment.
PLACES = (
    *("output/failure", REPORT, f"{REPORT}.part", "output/.sagefit-reserve", "output/data", "output"),
    *("checkpoints", "model", "code/train.py", "code/package", "torch/1.json", "torch"),
    *("input/data/sagefit/launcher.pyz", "input/config/resourceconfig.json"),
)
#: What a script may put into a place: one expression of Python each.
THINGS = {
    "a FIFO": "os.mkfifo(path)",
    "a link to a FIFO": "(os.path.lexists('fifo') or os.mkfifo('fifo'), os.symlink(os.path.abspath('fifo'), path))",
    "a link to nothing": "os.symlink('nothing', path)",
    "a link to itself": "os.symlink(os.path.basename(path), path)",
    "a link to a file outside": "os.symlink(outside + '/canary', path)",
    "a link to a folder outside": "os.symlink(outside, path)",
    "a second name of a file outside": "os.link(outside + '/canary', path)",
    "a socket": "socket.socket(socket.AF_UNIX).bind(os.path.relpath(path))",
    "an endless device": "os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))",  # root's alone
    "a folder": "os.mkdir(path)",
    "a file of a terabyte": "os.truncate(os.open(path, os.O_RDWR | os.O_CREAT), 1 << 40)",
    "a deep object": "open(path, 'w').write('[' * 100_000)",
    "another object": 'open(path, \'w\').write(\'{"pid": [], "rank": "x", "devices": {"a": 1e999}}\')',
}
ENDS = {"fail": "sys.exit('ValueError: diverged')", "finish": "pass", "wait": "time.sleep(600)"}
SCRIPT = """
import json, os, pathlib, shutil, socket, stat, sys, time
outside, root, torch = sys.argv[1], os.environ["SAGEFIT_ML_ROOT"], os.environ.get("SAGEFIT_TORCH_PEAKS", "/nowhere")
os.chdir(os.environ["TMPDIR"])
for place, act in json.loads(sys.argv[2]).items():
    path = torch + place[5:] if place.startswith("torch") else os.path.join(root, place)
    for _ in range(100):  # the launcher may make it anew in between
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
            eval(act)
            break
        except FileExistsError:
            continue
        except OSError:
            break
print("acted", flush=True)
"""


@contextmanager
def world(folder: Path) -> Iterator[tuple[Container, Path]]:
    """A training container, and a folder that is not of it."""
    outside = folder / "outside"
    outside.mkdir(parents=True)
    (outside / "canary").write_text(CANARY)
    container = Container(folder / "ml")
    try:
        yield container, outside
    finally:
        container.close()


def is_untouched(outside: Path) -> bool:
    return [path.name for path in outside.iterdir()] == ["canary"] and (outside / "canary").read_text() == CANARY


def as_sagemaker_makes_it_anew(container: Container) -> None:
    """The inputs of a container that starts once more."""
    shutil.rmtree(container.shipped)
    ship(container.shipped)
    shutil.rmtree(container.root / "input" / "config")
    (container.root / "input" / "config").mkdir()
    container.config("resourceconfig", {"current_host": "algo-1", "hosts": ["algo-1"]})


def attack(folder: Path, acts: dict[str, str], end: str) -> None:
    """Run a script that does all that, and then an innocent one on the same host."""
    with world(folder) as (container, outside):
        deepest_first = sorted(acts, key=lambda place: -place.count("/"))
        plan = json.dumps({place: THINGS[acts[place]] for place in deepest_first})
        container.code("train.py", SCRIPT + ENDS[end])
        container.code("package/module.py", "")
        launcher = container.start("train.py", words=(str(outside), plan))
        if end == "wait":
            assert launcher.stdout is not None
            for line in launcher.stdout:
                if line == "acted\n":
                    break
            launcher.send_signal(signal.SIGTERM)
        outcome = container.end(launcher)
        assert outcome.exit_code == {"fail": 1, "finish": 0, "wait": 143}[end], outcome.stderr
        assert is_untouched(outside)
        if end == "fail" and "output" not in acts and acts.get("output/failure") != "a folder":
            assert outcome.failure == "sagefit: code: train.py ended with exit code 1: ValueError: diverged"

        as_sagemaker_makes_it_anew(container)
        again = container.run("print('trained')")
        assert is_untouched(outside)
        said = [line for line in again.stdout.splitlines() if line.startswith(("trained", "sagefit: "))]
        assert said[-1] == "trained" if again.exit_code == 0 else "cannot be" in said[-1], again.stdout


#: A place, what the script puts there, and what that came to once.
KNOWN = [
    ("torch/1.json", "a FIFO", "held for ever"),
    ("torch/1.json", "an endless device", "held for ever"),
    ("torch/1.json", "a deep object", "the launcher failed"),
    ("torch/1.json", "another object", "the launcher failed"),
    ("torch", "a FIFO", "held for ever"),
    ("input/data/sagefit/launcher.pyz", "a FIFO", "held for ever"),
    ("output/failure", "a second name of a file outside", "written outside"),
    ("output", "a link to a folder outside", "written outside"),
    ("output/data", "a link to a folder outside", "written outside"),
    ("code/package", "a link to a folder outside", "the next run wrote outside"),
    ("code/train.py", "a second name of a file outside", "the next run wrote outside"),
    ("checkpoints", "a FIFO", "the next run: the launcher failed"),
]


@pytest.mark.parametrize(("place", "thing", "before"), KNOWN, ids=lambda text: str(text).replace("/", "-"))
def test_one_thing_in_one_place(
    tmp_path: Path, place: str, thing: str, before: str, request: pytest.FixtureRequest
) -> None:
    attack(tmp_path, {place: thing}, "fail")
    note(request, f"script: {place} is {thing}", before, "ends in time, nothing outside")


_folders = itertools.count()


# To make a case smaller takes minutes: it says enough as it is.
@settings(
    max_examples=settings().max_examples // 16,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    acts=st.fixed_dictionaries({}, optional={place: st.sampled_from(sorted(THINGS)) for place in PLACES}),
    end=st.sampled_from(sorted(ENDS)),
)
def test_a_script_neither_holds_the_launcher_nor_leads_it_out(tmp_path: Path, acts: dict[str, str], end: str) -> None:
    attack(tmp_path / str(next(_folders)), acts, end)


#: Stands in for a disk that does not answer: the launcher's thread that opens the file stands still.
SLOW = """
import os, sys, time
def stand_still(event, arguments):
    if event == "open" and os.path.basename(str(arguments[0])) == os.environ["SLOW"] and os.path.exists("slow"):
        open("standing", "w").close()
        time.sleep(600)
sys.addaudithook(stand_still)
"""


def slow(container: Container, name: str, **seconds: float) -> None:
    """From when a file ``slow`` is there, the file system does not answer for a file of that name.

    ``seconds`` are for constants of the launcher, named by module and name.
    """
    library = container.root.parent / "library"
    library.mkdir()
    (library / "sitecustomize.py").write_text(SLOW)
    container.environment |= {"PYTHONPATH": str(library), "SLOW": name}
    changed: dict[str, str] = {}
    for constant, value in seconds.items():
        module, _, constant = constant.partition("_")
        name = f"{module}.py"
        before = changed.get(name) or (LAUNCHER / name).read_text(encoding="utf-8")
        assert before.count(f"\n{constant} = ") == 1
        changed[name] = before.replace(f"\n{constant} = ", f"\n{constant} = {value} or ")
    ship(container.shipped, changed)


SLOW_FROM_NOW = "import os, pathlib\nos.chdir(os.environ['SAGEFIT_ML_ROOT'])\npathlib.Path('slow').touch()\n"


# A busy machine can take any time until the launcher writes again: what ends first is not to be the script.
UNTIL_IT_STANDS = "import time\nwhile not os.path.exists('standing'):\n    time.sleep(0.05)\n"


def test_a_report_that_is_not_written_holds_nothing_up(tmp_path: Path) -> None:
    with world(tmp_path) as (container, _):
        slow(container, "sagefit.json.part", recorder_LINGER=1.0, launch_REPORT_WAIT=1.0)
        outcome = container.run(f"{SLOW_FROM_NOW}{UNTIL_IT_STANDS}raise SystemExit(3)")
        assert outcome.exit_code == 3
        assert outcome.failure == "sagefit: code: train.py ended with exit code 3"


def test_a_disk_that_never_answers_holds_nothing_up(tmp_path: Path) -> None:
    with world(tmp_path) as (container, _):
        slow(container, "failure", stop_REST=2.0)
        outcome = container.run(f"{SLOW_FROM_NOW}raise SystemExit(3)")
        assert (outcome.exit_code, outcome.failure) == (3, None)
        assert (container.root / "standing").exists()


def test_a_stop_is_obeyed_while_a_disk_does_not_answer(tmp_path: Path) -> None:
    with world(tmp_path) as (container, _):
        slow(container, "resourceconfig.json", stop_LATE=1.0)
        container.environment["SAGEFIT_STOP_GRACE_SECONDS"] = "1"
        (container.root / "slow").touch()
        container.code("train.py", "print('never')")
        launcher = container.start()
        while not (container.root / "standing").exists():
            assert launcher.poll() is None
            time.sleep(0.05)
        launcher.send_signal(signal.SIGTERM)
        outcome = container.end(launcher)
        assert outcome.exit_code == 143
        assert "never" not in outcome.stdout
