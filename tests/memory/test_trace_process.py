"""The process that traces: what it is given and what not, how it is enclosed, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_runner import Sagefit
from job_files import write_job
from sagefit.errors import FAILED, INVALID, SagefitError
from sagefit.job.model import Job
from sagefit.memory.read import read
from sagefit.memory.trace import run, store
from trace_jobs import traced_job

CHILD = Path(run.__file__).with_name("child")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SAGEFIT_TRACE_PYTHON", raising=False)
    return tmp_path


def child(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program in the child's place."""
    (folder / "child").mkdir()
    (folder / "child" / "__main__.py").write_text(
        f"import json, os, subprocess, sys, time\nrequest = json.load(open(sys.argv[1]))\n{code}\n", encoding="utf-8"
    )
    monkeypatch.setattr(run, "_CHILD", folder / "child")


def start(job: Job, timeout: float = 60) -> store.Record:
    return run.trace(job, read(job), job.hyperparameters, timeout=timeout)


def test_the_child_has_no_credentials_no_home_and_a_copy_of_the_code(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    code = """
os.write(1, b"{}" * 100000)
seen = {"env": dict(os.environ), "cwd": os.getcwd(), "request": request, "isolated": sys.flags.isolated}
open("written.txt", "w").write("x")
json.dump({"error": {"kind": "untraceable", "message": json.dumps(seen)}}, open(sys.argv[2], "w"))"""
    child(home, code, monkeypatch)
    job = traced_job(home, environment={"DEPTH": "3"})
    with pytest.raises(SagefitError, match="cannot be traced") as caught:
        start(job)
    assert caught.value.exit_code == FAILED
    assert "closed form" in (caught.value.hint or "")
    seen = json.loads(caught.value.message.partition("cannot be traced: ")[2])
    assert not [name for name in seen["env"] if name.startswith("AWS_") or "PROXY" in name]
    assert seen["env"]["DEPTH"] == "3"
    assert seen["env"]["HOME"].startswith(str(Path(seen["cwd"]).parent))
    assert seen["env"]["HF_HUB_OFFLINE"] == "1"
    assert seen["isolated"] == 1
    assert seen["request"]["batches"] == [8, 2]
    assert seen["request"]["batch_hyperparameter"] == "per_device_train_batch_size"
    assert not (home / "src" / "written.txt").exists()
    assert not Path(seen["cwd"]).exists()
    assert (home / "home" / "trace" / job.name / "log").stat().st_size == 200000


def test_what_the_author_can_correct_is_invalid_input(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = 'json.dump({"error": {"kind": "protocol", "message": "no function"}}, open(sys.argv[2], "w"))'
    child(home, code, monkeypatch)
    with pytest.raises(SagefitError, match=r"train\.py:build: no function") as caught:
        start(traced_job(home))
    assert caught.value.exit_code == INVALID


@pytest.mark.parametrize(("code", "how"), [("os._exit(7)", "exit code 7"), ("os.abort()", "killed by signal 6")])
def test_a_crash_is_said(home: Path, monkeypatch: pytest.MonkeyPatch, code: str, how: str) -> None:
    child(home, code, monkeypatch)
    with pytest.raises(SagefitError, match=how) as caught:
        start(traced_job(home))
    assert caught.value.exit_code == FAILED


def test_a_timeout_ends_every_process_of_the_trace(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = home / "grandchild"
    child(
        home,
        f"p = subprocess.Popen(['sleep', '600']); open({str(marker)!r}, 'w').write(str(p.pid)); p.wait()",
        monkeypatch,
    )
    with pytest.raises(SagefitError, match="not done after 2 s"):
        start(traced_job(home), timeout=2)
    assert gone(int(marker.read_text()))


def gone(pid: int) -> bool:
    """Whether a process ends within a few seconds; one that nobody has waited for yet counts."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_ctrl_c_ends_the_child_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = home / "pid"
    child(home, f"open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(600)", monkeypatch)

    def interrupt(stage: str, seconds: float) -> None:
        assert stage == "starting"
        assert seconds < 60
        if marker.exists() and marker.read_text():
            raise KeyboardInterrupt

    job = traced_job(home)
    with pytest.raises(KeyboardInterrupt):
        run.trace(job, read(job), job.hyperparameters, progress=interrupt)
    assert gone(int(marker.read_text()))


GUARDED = f"""
import importlib.util, os, socket, sys, time
spec = importlib.util.spec_from_file_location("guard", {str(CHILD / "guard.py")!r})
guard = importlib.util.module_from_spec(spec)
spec.loader.exec_module(guard)
guard.enclose(2**34)
"""


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.getaddrinfo('localhost', 80)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
        "socket.socket().connect_ex(('127.0.0.1', 9))",
    ],
)
def test_python_inside_has_no_network(attempt: str) -> None:
    ours, held = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"{GUARDED}\n{attempt}"],
            stdin=ours,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(held)
    assert "network access is closed while a model is traced" in done.stderr


def test_the_child_ends_with_its_parent() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", f"{GUARDED}\nprint('up', flush=True)\ntime.sleep(600)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin
    assert process.stdout
    with process.stdout:
        assert process.stdout.readline() == b"up\n"
        process.stdin.close()
        assert process.wait(30) == -9


def test_the_command_names_the_knob_that_is_missing(tmp_path: Path) -> None:
    sagefit = Sagefit(tmp_path / "home")
    path = write_job(tmp_path, {"memory": {"precision": "fp32"}})
    assert "memory.trace is not set" in sagefit("trace", path, check=INVALID).err
    path = write_job(tmp_path, {"memory": {"trace": {"function": "train.py:build"}}})
    assert "SAGEFIT_TRACE_PYTHON" in sagefit("trace", path, check=INVALID).err
    assert "no program" in sagefit("trace", path, check=INVALID, SAGEFIT_TRACE_PYTHON="/nowhere/python").err
    without = sagefit("trace", path, check=INVALID, SAGEFIT_TRACE_PYTHON=sys.executable).err
    assert "this Python has no torch" in without


def test_what_one_gpu_cannot_show_is_refused_before_anything_runs(tmp_path: Path) -> None:
    memory = {"sharding": "zero3", "trace": {"function": "train.py:build"}}
    done = Sagefit(tmp_path / "home")("trace", write_job(tmp_path, {"memory": memory}), check=FAILED)
    assert "memory.sharding is zero3" in done.err
    assert "closed form" in done.err
