"""Who is at work on a stack: what the lock says, and that a second one waits, process or thread."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sagefit.processes import Identity, running
from sagefit.terraform import at_work as at_work_module
from sagefit.terraform.at_work import Begun, at_work
from waiting import wait_until


def test_it_may_be_nested_and_ends_with_the_outermost(tmp_path: Path) -> None:
    file = tmp_path / "dev/lock"
    with at_work(file, "dev") as outer:
        with at_work(file, "dev") as inner:
            assert inner is outer
        outer.settle()  # still open
    assert not (file.stat().st_mode & 0o077)


def test_another_thread_waits(tmp_path: Path) -> None:
    file, order = tmp_path / "lock", []

    def second() -> None:
        with at_work(file, "dev"):
            order.append("second")

    thread = threading.Thread(target=second)
    with at_work(file, "dev"):
        thread.start()
        time.sleep(0.5)  # long enough for a second one that did not wait
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_what_was_begun_is_kept_until_a_command_ends_well(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    me = Identity.of()
    with at_work(file, "dev") as work:
        work.begin(me.pid)
    with at_work(file, "dev") as work:
        assert [begun.process for begun in work.note.begun] == [me]
        work.end(me.pid, forget=False)
        assert work.note.begun[0].ended
        work.settle()
        assert not work.note.begun


def test_a_note_that_cannot_be_read_is_about_nobody(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    for text in ("", "{", json.dumps({"command": 1}), "[]"):
        file.write_text(text, encoding="utf-8")
        with at_work(file, "dev") as work:
            assert not work.note.begun
        assert json.loads(file.read_text(encoding="utf-8"))["process"]["pid"] == Identity.of().pid


def test_a_process_is_known_by_its_start_too() -> None:
    me = Identity.of()
    assert me.process()
    assert Identity(me.pid, me.started - 10).process() is None


def test_a_number_that_was_used_before_hides_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        before = psutil.Process(child.pid)
        # One of the same number that this process has seen, and that is gone.
        monkeypatch.setattr(before, "_ident", (child.pid, 1.0))
        monkeypatch.setitem(vars(psutil)["_pmap"], child.pid, before)
        (found,) = [process for process in running() if process.pid == child.pid]
        found.kill()
        assert child.wait(timeout=30) == -signal.SIGKILL


@pytest.fixture(params=[3600.0, -3600.0], ids=["forwards", "backwards"])
def clock_is_set(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Sets the clock by an hour, as psutil sees it: a real clock is that of the whole machine."""
    real = psutil.boot_time()
    return lambda: monkeypatch.setattr("psutil._psplatform.boot_time", lambda: real + request.param)


def test_a_process_is_known_after_the_clock_was_set(clock_is_set: Callable[[], None]) -> None:
    me = Identity.of()
    age = me.age()
    assert not me.clock_was_set()
    clock_is_set()
    assert me.process()
    assert abs(psutil.Process().create_time() - me.started) > 3000  # the start that moved
    assert Identity.of() != me
    assert me.clock_was_set()
    assert 0 <= me.age() - age < 60
    assert Identity(me.pid, me.started, me.since_boot - 1, me.boot).process() is None
    assert Identity(me.pid, me.started, me.since_boot, "another boot").process() is None


def test_the_older_of_two_processes_is_so_by_any_clock(clock_is_set: Callable[[], None]) -> None:
    me, child = Identity.of(), subprocess.Popen(["sleep", "60"])
    try:
        clock_is_set()
        later = Identity.of(child.pid)
        assert me.is_older_than(later)
        assert not later.is_older_than(me)
    finally:
        child.kill()
        child.wait()


def test_a_provider_is_ended_with_its_terraform_and_not_before(
    clock_is_set: Callable[[], None], tmp_path: Path
) -> None:
    """Who waits for a stack ends providers whose Terraform is gone; those of one that works are left alone."""
    provider = tmp_path / "terraform-provider-aws_v5"
    shutil.copy(shutil.which("sleep") or "", provider)
    terraform = subprocess.Popen(["sh", "-c", f"{provider} 300 & echo $!; wait"], start_new_session=True, stdout=-1)
    assert terraform.stdout
    with terraform.stdout as said:
        child = psutil.Process(int(said.readline()))
    try:
        wait_until(lambda: child.name().startswith(provider.name[:15]))  # until then it is a copy of the shell
        note = at_work_module.Note("sagefit apply", Identity(999999, 0), 0, (Begun(Identity.of(terraform.pid)),))
        clock_is_set()
        at_work_module._end_orphans(note)
        assert child.is_running()
        terraform.kill()
        terraform.wait()
        at_work_module._end_orphans(note)
        child.wait(timeout=30)
    finally:
        terraform.kill()
        terraform.wait()
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
