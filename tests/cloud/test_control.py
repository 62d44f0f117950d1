"""Starting, finding and ending the cloud; every test here has a home of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from cloud.aws_user import Aws
from sagefit.cli.cloud import app
from sagefit.cloud import control, record, scratch
from sagefit.errors import SagefitError
from sagefit.processes import running

SLEEP = "import time; print('asleep', flush=True); time.sleep(600)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path))
    monkeypatch.delenv("SAGEFIT_MEMORY_SCALE", raising=False)
    yield tmp_path
    control.down()


def training_processes(instance: str) -> list[psutil.Process]:
    found = []
    for process in running():
        try:
            if process.environ().get(record.INSTANCE_VARIABLE) == instance:
                found.append(process)
        except psutil.Error:
            continue
    return found


def train() -> None:
    aws = Aws(control.environment())
    aws.prepare()
    name = aws.start(SLEEP)
    aws.wait_for_line(name, "asleep")
    aws.close()


def test_up_status_down(home: Path) -> None:
    assert control.status() is None
    assert not control.down()
    now, started = control.up()
    assert started
    assert control.status() is not None
    assert control.up()[1] is False
    assert now.memory_scale == 1 / 16
    for name in ("cloud.json", "cloud.log", "calls.jsonl"):
        assert stat.S_IMODE((home / "cloud" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "cloud").stat().st_mode) == 0o700

    saved = record.load()
    assert saved is not None
    train()
    assert control.down()
    assert control.status() is None
    assert not psutil.pid_exists(now.pid)
    assert training_processes(saved.instance) == []
    assert not (home / "cloud" / "cloud.json").exists()
    assert not list((home / "cloud").glob("runs/*"))


@pytest.mark.usefixtures("home")
def test_training_does_not_outlive_a_killed_cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    now, _ = control.up()
    train()
    (left,) = temporary.glob("sagefit-*")
    assert [path.name[:2] for path in left.iterdir()] == ["c-"]
    saved = record.load()
    assert saved is not None
    os.kill(now.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(p.pid != now.pid for p in training_processes(saved.instance)):
        time.sleep(0.1)
    assert [p for p in training_processes(saved.instance) if p.pid != now.pid] == []
    assert control.status() is None
    again, started = control.up()  # the record left behind is no hindrance
    assert started
    assert again.pid != now.pid
    assert not left.exists()
    control.down()
    assert list(temporary.glob("sagefit-*")) == []


def test_a_note_of_temporary_files_removes_nothing_else(home: Path, tmp_path: Path) -> None:
    """Somebody may have written it, or a backup brought it back."""
    kept = [tmp_path / "other", tmp_path / "link-target"]
    for folder in kept:
        folder.mkdir()
    link = tmp_path / "sagefit-link"
    link.symlink_to(kept[1])
    note = home / "cloud" / "temporary"
    note.parent.mkdir(mode=0o700, parents=True)
    for noted in (str(kept[0]), str(link), "sagefit-x", "", "/", "\0"):
        note.write_text(noted, encoding="utf-8")
        scratch.end()
    assert all(folder.is_dir() for folder in kept)
    assert link.is_symlink()


def test_a_record_of_somebody_else_is_not_believed(home: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        created = psutil.Process(other.pid).create_time()
        record.save(record.Record(other.pid, created, 9, "not-this", "key", "secret", 1.0, 0.0, 1.0, None))
        assert control.status() is None
        assert not control.down()
        assert other.poll() is None
        other.kill()
    assert (home / "cloud").is_dir()


@pytest.mark.usefixtures("home")
def test_a_port_in_use_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SagefitError, match=f"--port: 127.0.0.1:{port} cannot be used"):
            control.up(port=port)
    assert control.status() is None


@pytest.mark.usefixtures("home")
def test_other_options_than_it_runs_with_are_refused() -> None:
    control.up(memory_scale=0.5)
    with pytest.raises(SagefitError, match=r"already runs with --memory-scale 0\.5, not 0\.25"):
        control.up(memory_scale=0.25)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0])
def test_a_memory_scale_has_limits(scale: float) -> None:
    with pytest.raises(SagefitError, match="--memory-scale"):
        control.up(memory_scale=scale)


def test_a_server_that_does_not_start_is_explained(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_server_environment", lambda _port: {"PATH": os.defpath})
    with pytest.raises(SagefitError, match="the embedded cloud ended with exit code 1") as caught:
        control.up()
    assert caught.value.hint == f"see {home}/cloud/cloud.log"


@pytest.mark.usefixtures("home")
def test_the_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(*arguments: str, expect: int = 0) -> Any:
        result = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
        assert result.exit_code == expect, result.output
        return result

    assert json.loads(run("status", "--json", expect=1).stdout) == {"running": False}
    assert "not running" in run("status", expect=1).stdout
    with pytest.raises(SagefitError, match="not running") as caught:
        run("env")
    assert "sagefit cloud up" in str(caught.value.hint)
    assert "no embedded cloud was running" in run("down").stderr

    faults = tmp_path / "bad.yaml"
    faults.write_text("- { outcome: { throttle: 0 } }")
    with pytest.raises(SagefitError, match=r"fault 1\.outcome\.throttle"):
        run("up", "--faults", str(faults))

    assert "up in" in run("up").stderr
    assert "already up" in run("up").stderr
    found = json.loads(run("status", "--json").stdout)
    assert found["running"]

    monkeypatch.setenv("AWS_PROFILE", "production")
    shell = f"{run('env').stdout}\nenv"
    after = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout.splitlines()
    variables = dict(line.split("=", 1) for line in after if line.startswith("AWS_"))
    assert variables["AWS_ENDPOINT_URL"] == found["endpoint"]
    assert variables["AWS_EC2_METADATA_DISABLED"] == "true"
    assert "AWS_PROFILE" not in variables
    assert "AWS_PROFILE" not in control.clean_environment()
    monkeypatch.delenv("AWS_PROFILE")

    aws = Aws(variables)
    aws.client("sts").get_caller_identity()
    aws.close()
    calls = [json.loads(line) for line in run("calls", "--json").stdout.splitlines()]
    assert len(calls) == 1
    assert set(calls[0]) == {"time", "service", "action", "kind", "status"}
    assert calls[0]["action"] == "GetCallerIdentity"
    assert "GetCallerIdentity" in run("calls").stdout
    assert "ended" in run("down").stderr


@pytest.mark.usefixtures("home")
def test_loopback_stays_out_of_a_proxys_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "example.com")
    now, _ = control.up()
    assert control.environment()["NO_PROXY"] == "example.com,127.0.0.1,localhost"
    assert control.environment()["AWS_ENDPOINT_URL"] == now.endpoint
