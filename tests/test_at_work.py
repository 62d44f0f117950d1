"""Who is at work on a stack: what the lock says, and that a second one waits, process or thread."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from sagefit.processes import Identity
from sagefit.terraform.at_work import at_work


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
