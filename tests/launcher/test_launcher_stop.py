"""A request to stop reaches the script in a way that lets it save its work, and the time there is is kept to."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from .conftest import OF_FILES, Container, Outcome

pytestmark = OF_FILES

SAVE = """
import signal, sys, time
def save(*_):
    print('saved', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('ready', flush=True)
time.sleep(60)
"""
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(60)"


def until(process: subprocess.Popen[str], line: str) -> None:
    """Reads the log up to a line."""
    assert process.stdout
    assert line + "\n" in iter(process.stdout.readline, ""), f"{line} never came"


def stopped(container: Container, entry_point: str = "train.py", times: int = 1) -> Outcome:
    """Starts the job, asks it to stop once its script is ready, and waits."""
    process = container.start(entry_point)
    until(process, "ready")
    for _ in range(times):
        process.send_signal(signal.SIGTERM)
    return container.end(process)


def words(process: psutil.Process) -> list[str]:
    """The command line of a process, nothing once it has ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_a_script_that_saves_its_work(container: Container) -> None:
    container.code("train.py", SAVE)
    outcome = stopped(container)
    assert (outcome.exit_code, outcome.failure) == (0, None)
    assert "[sagefit] asked to stop: the script has 115 s to save its work and end\n" in outcome.stdout
    assert "saved\n" in outcome.stdout


def test_a_request_that_does_not_wake_the_main_thread(container: Container) -> None:
    """As when it comes just before that thread begins to wait: here another thread takes the signal."""
    container.code("train.py", SAVE)
    process = container.start("train.py")
    until(process, "ready")
    other = next(thread.id for thread in psutil.Process(process.pid).threads() if thread.id != process.pid)
    assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGTERM) == 0
    outcome = container.end(process)
    assert (outcome.exit_code, outcome.failure) == (0, None)
    assert "saved\n" in outcome.stdout


def test_a_script_that_only_ends(container: Container) -> None:
    container.code("train.py", "import time\nprint('ready')\ntime.sleep(60)")
    outcome = stopped(container)
    assert outcome.exit_code == 128 + signal.SIGTERM
    assert outcome.failure == "sagefit: stopped: train.py was ended by signal 15, after a request to stop"
    assert outcome.report["signal"] == signal.SIGTERM


def test_workers_are_left_to_the_script(container: Container) -> None:
    """As with a data loader, whose workers have no handler and are needed up to the next checkpoint."""
    container.code(
        "train.py",
        "import signal, subprocess, sys, time\n"
        "work = 'print(1, flush=True); import sys; sys.stdin.read(); print(2)'\n"
        "pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
        "worker = subprocess.Popen([sys.executable, '-c', work], **pipes)\n"
        "worker.stdout.readline()\n"
        "def save(*_):\n    print('worker said', worker.communicate()[0])\n    sys.exit(worker.returncode)\n"
        "signal.signal(signal.SIGTERM, save)\nprint('ready', flush=True)\ntime.sleep(60)",
    )
    outcome = stopped(container)
    assert "worker said 2\n" in outcome.stdout
    assert outcome.exit_code == 0


def test_a_script_behind_a_shell(container: Container) -> None:
    container.code("save.py", SAVE)
    container.code("train.sh", f"{sys.executable} save.py; code=$?; echo shell saw $code; exit $code")
    outcome = stopped(container, "train.sh")
    said = [line for line in outcome.stdout.splitlines() if not line.startswith("[sagefit]")]
    assert said[-2:] == ["saved", "shell saw 0"]
    assert outcome.exit_code == 0


def test_a_second_request_takes_no_time_away(container: Container) -> None:
    container.code(
        "train.py",
        "import signal, sys, time\nheard = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: heard.append(1))\nprint('ready', flush=True)\n"
        "while not heard:\n    time.sleep(0.05)\n"
        "time.sleep(1)\nprint('heard', len(heard))",
    )
    outcome = stopped(container, times=3)
    assert "heard 1\n" in outcome.stdout
    assert outcome.stdout.count("asked to stop") == 1
    assert outcome.exit_code == 0


def _script_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The script and its child, by name: whatever the launcher starts for itself is none of them.

    A process between fork and exec, and for a moment after that, has no name of its own.
    """
    everyone = psutil.Process(process.pid).children(recursive=True)
    return [each for each in everyone if {"train.py", "sleep"} & {Path(word).name for word in words(each)}]


def test_after_the_time_all_of_it_is_killed(container: Container) -> None:
    container.environment["SAGEFIT_STOP_GRACE_SECONDS"] = "2"
    container.code("train.py", "import subprocess\nsubprocess.Popen(['sleep', '60'])\n" + DEAF)
    process = container.start()
    until(process, "ready")
    while len(children := _script_of(process)) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    assert len(children) == 2
    process.send_signal(signal.SIGTERM)
    outcome = container.end(process)
    assert "the script has 2 s to save" in outcome.stdout
    assert outcome.exit_code == 128 + signal.SIGKILL
    assert outcome.failure
    assert outcome.failure.startswith("sagefit: stopped: train.py was killed (signal 9)")
    assert outcome.failure.endswith(", after a request to stop")
    assert (outcome.report["class"], outcome.report["signal"]) == ("stopped", signal.SIGKILL)
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert (len(gone), alive) == (2, [])


def test_a_request_before_the_script(container: Container) -> None:
    """While pip runs; pip itself is asked, and the script never begins."""
    fake = container.root.parent / "pip-stand-in"
    (fake / "pip").mkdir(parents=True)
    (fake / "pip" / "__init__.py").touch()
    (fake / "pip" / "__main__.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)")
    container.environment["PYTHONPATH"] = str(fake)
    container.code("requirements.txt", "anything\n")
    container.code("train.py", "print('never')")
    outcome = stopped(container)
    assert outcome.failure == "sagefit: stopped: stopped before the script began"
    assert outcome.exit_code == 128 + signal.SIGTERM
    assert "never" not in outcome.stdout
