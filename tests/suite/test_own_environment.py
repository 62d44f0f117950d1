"""Sessions of pytest that are started in very different ways find the same environment, and so does what they start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import own_environment
from sagefit.cloud.aws_environment import NO_FILES

HERE = Path(__file__).parents[1]
CONFTEST = "import own_environment\nown_environment.settle()\n"
FOUND = """
import json, locale, os, signal, sys, time

def found():
    umask = os.umask(0)
    os.umask(umask)
    ignored = [name for name in ("SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM", "SIGCHLD")
               if signal.getsignal(getattr(signal, name)) == signal.SIG_IGN]
    return dict(
        variables={name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        umask=umask, ignored=ignored, blocked=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        zone=time.tzname, noon=time.mktime((2026, 7, 1, 12, 0, 0, 0, 0, 0)), locale=locale.setlocale(locale.LC_ALL),
        encoding=locale.getpreferredencoding(False), keeps_bytecode=not sys.dont_write_bytecode,
    )
"""
TEST = """
import json, pathlib, subprocess, sys
from found import found

def test_it():
    child = subprocess.run(
        [sys.executable, "-c", "import json, found; print(json.dumps(found.found()))"],
        cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, check=True,
    )
    pathlib.Path(__file__).with_name("found.json").write_text(json.dumps([found(), json.loads(child.stdout)]))
"""
_HOSTILE = """
TZ=America/New_York LC_ALL=POSIX LANG=de_DE.UTF-8 COLUMNS=40 TERM=dumb NO_COLOR=1 OMP_NUM_THREADS=1
AWS_PROFILE=work AWS_CA_BUNDLE=/none.pem AWS_ACCESS_KEY_ID=somebody CLOUD=local SAGEFIT_CATALOG=/none
TF_LOG=TRACE TF_VAR_name=theirs TF_CLI_ARGS_plan=-lock=false TF_WORKSPACE=theirs SAGEFIT_CHECKOV=/none
HTTP_PROXY=http://proxy.invalid:1 HTTPS_PROXY=http://proxy.invalid:2 no_proxy=example.com
PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore PYTHONPATH=/none PYTEST_ADDOPTS=-q
PIP_USER=1 PIP_REQUIRE_VIRTUALENV=1 GIT_DIR=/none MAKEFLAGS=n
"""
HOSTILE = dict(pair.split("=", 1) for pair in _HOSTILE.split())


def found(folder: Path, processes: int, hostile: bool) -> list[dict[str, Any]]:
    """What a test finds in its own process and in one that it starts."""
    folder.mkdir()
    files = {"conftest.py": CONFTEST, "found.py": FOUND, "test_it.py": TEST}
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = . {HERE}\n")

    def unusual() -> None:
        os.umask(0o077)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as & and nohup do
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    kept = {name: os.environ[name] for name in ("HOME", "PATH")}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(processes)],
        cwd=folder,
        env=kept | (HOSTILE if hostile else {}),
        stdin=subprocess.DEVNULL if hostile else subprocess.PIPE,
        preexec_fn=unusual if hostile else None,
        start_new_session=hostile,
        capture_output=True,
        check=True,
        timeout=300,
    )
    result: list[dict[str, Any]] = json.loads((folder / "found.json").read_text())
    return result


@pytest.mark.parametrize("processes", [0, 1])
def test_it_is_the_same_wherever_the_tests_are_started(tmp_path: Path, processes: int) -> None:
    plain = found(tmp_path / "plain", processes, hostile=False)
    hostile = found(tmp_path / "hostile", processes, hostile=True)
    for own in hostile:  # said once to pytest and to pip, and to nobody else
        assert own["variables"].pop("PY_COLORS") == "0"
        assert own["variables"].pop("PIP_PROXY") == HOSTILE["HTTPS_PROXY"]
    assert hostile == plain
    for one in plain:
        assert (one["umask"], one["ignored"], one["blocked"]) == (0o022, [], [])
        assert (one["zone"], one["encoding"].lower(), one["keeps_bytecode"]) == (["UTC", "UTC"], "utf-8", True)
        assert one["variables"].keys() == {"HOME", "PATH", "LANG", "TZ", "SAGEFIT_CATALOG", *NO_FILES}


def test_this_session_has_it() -> None:
    assert own_environment.named(os.environ) == dict(os.environ)
    assert time.tzname == ("UTC", "UTC")


def test_only_this_checkout_is_put_before_what_is_installed() -> None:
    """A copy of the checkout tests its own package."""
    paths = {"PYTHONPATH": os.pathsep.join([str(HERE.parent / "python"), "/none", "", str(HERE)])}
    assert own_environment.named(paths)["PYTHONPATH"] == os.pathsep.join([str(HERE.parent / "python"), str(HERE)])
    assert "PYTHONPATH" not in own_environment.named({"PYTHONPATH": "/none"})


def test_pip_has_a_proxy_of_its_own_where_one_is_set() -> None:
    assert own_environment.named({"PIP_PROXY": "", "https_proxy": "http://proxy"})["PIP_PROXY"] == ""
    assert own_environment.named({"ALL_PROXY": "http://proxy"})["PIP_PROXY"] == "http://proxy"
    assert "PIP_PROXY" not in own_environment.named({"HTTP_PROXY": "http://proxy", "NO_COLOR": ""})
