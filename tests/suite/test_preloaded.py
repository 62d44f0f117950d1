"""A command that is forked does what one that is started does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import leftovers
import preloaded
import preloaded_server
from cli_runner import Sagefit
from sagefit.cloud import control, record
from sagefit.paths import ROOT
from waiting import wait_until

QUICKSTART = str(ROOT / "jobs" / "quickstart.yaml")
STARTED = ("-m", "sagefit")
# Of each variable that is read while the libraries are imported: who reads it.
READ = r"""
import importlib, json, os, sys
sys.path.insert(0, sys.argv[1])
import preloaded_server
read, own = [], type(os.environ).__getitem__
def noted(self, name):
    read.append(name)
    return own(self, name)
type(os.environ).__getitem__ = noted
for name in preloaded_server.MODULES[sys.argv[2]]:
    importlib.import_module(name)
preloaded_server._read_models()
print(json.dumps(sorted(set(read))))
"""


@pytest.fixture
def sagefit(tmp_path: Path) -> Sagefit:
    return Sagefit(tmp_path / "home")


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["-h"], {}),
        (["size", QUICKSTART], {"COLUMNS": "70"}),
        (["size", QUICKSTART, "--json"], {"AWS_REGION": "eu-west-1"}),
        (["size", "nowhere.yaml"], {}),
        (["sise"], {}),
        (["cloud", "status"], {}),
        (["diagnose", "-"], {}),
    ],
    ids=" ".join,
)
def test_it_says_the_same(sagefit: Sagefit, words: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    assert preloaded.program(sagefit.environment) != list(STARTED)
    forked = sagefit(*words, check=None, cwd=tmp_path, **environment)
    assert forked == sagefit(*words, check=None, cwd=tmp_path, program=STARTED, **environment)


def test_what_the_interpreter_reads_is_given_to_a_process_of_its_own(sagefit: Sagefit) -> None:
    for name in ("PYTHONUTF8", "LC_ALL", "HOME", "COV_CORE_SOURCE"):
        assert preloaded.program(sagefit.environment | {name: "1"}) == list(STARTED)
    assert preloaded.program(sagefit.environment | {"COLUMNS": "1"}) == preloaded.program(sagefit.environment)


@pytest.mark.parametrize("program", preloaded_server.MODULES)
def test_what_is_imported_before_reads_nothing_that_a_test_could_set(program: str) -> None:
    command = [sys.executable, "-c", READ, str(Path(preloaded.__file__).parent), program]
    read = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    if program != "sagefit":  # an embedded cloud is given few variables
        read = [name for name in read if control._is_inherited(name)]
    assert [name for name in read if not name.startswith(preloaded.READ_BEFORE)] == []


def test_an_embedded_cloud_is_forked_unless_it_has_what_the_interpreter_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, language in enumerate((os.environ["LANG"], "C")):
        monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / str(number)))
        monkeypatch.setenv("LANG", language)
        control.up()
        started = record.load()
        assert started
        command = psutil.Process(started.pid).cmdline()
        assert preloaded.is_fork(psutil.Process(started.pid)) == (number == 0)
        assert ("sagefit_cloud.server" in command[:3]) == (number == 1)
        assert control.down()


@pytest.fixture
def waiting(sagefit: Sagefit, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command that reads until its standard input ends, and the server that has forked it."""
    with preloaded.server() as (place, server):
        monkeypatch.setenv(preloaded.SOCKET, place)
        command = [sys.executable, *preloaded.program(sagefit.environment), "diagnose", "-"]
        with subprocess.Popen(command, env=sagefit.environment, stdin=subprocess.PIPE) as asking:
            yield asking, server
            asking.kill()


def forks(server: int) -> list[psutil.Process]:
    """Of each command the process that waits for it, and its own."""
    return psutil.Process(server).children(recursive=True)


def command_of(server: int) -> int:
    """The only command."""
    return wait_until(lambda: [each for each in forks(server) if each.ppid() != server])[0].pid


def test_what_forks_share_is_counted_once(waiting: tuple[subprocess.Popen[bytes], int], tmp_path: Path) -> None:
    _, server = waiting
    command_of(server)
    same = [psutil.Process(server), *forks(server)]
    assert all(map(preloaded.is_fork, same))
    meter = leftovers.Meter(tmp_path)
    meter.look()
    apart = sum(process.memory_info().rss - process.memory_info().shared for process in same)
    own = psutil.Process().memory_info()
    assert own.rss - own.shared < meter.peak < own.rss - own.shared + 0.7 * apart


def test_whoever_is_gone_takes_the_command_with_it(waiting: tuple[subprocess.Popen[bytes], int]) -> None:
    asking, server = waiting
    command_of(server)
    asking.kill()
    wait_until(lambda: not forks(server))


def test_a_signal_that_ended_the_command_is_told(waiting: tuple[subprocess.Popen[bytes], int]) -> None:
    asking, server = waiting
    os.kill(command_of(server), signal.SIGKILL)
    assert asking.wait() == -signal.SIGKILL
