"""Real troubles on the embedded cloud, and what the attempt after them starts with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import psutil
import pytest

from sagefit.paths import ROOT
from scenarios.conftest import Cloud, record
from scenarios.hard_runs import TROUBLES, hanging, lines, process_of, run_of
from waiting import wait_until

pytestmark = pytest.mark.xdist_group("scenarios")

FULL = pytest.mark.full(
    witness="tests/scenarios/test_real_faults.py::test_the_next_attempt_starts_at_the_checkpoint"
    "[host_memory-host_memory-signal 9]"
)


@pytest.mark.parametrize(
    ("trouble", "failure", "says"),
    [
        ("host_memory", "host_memory", "signal 9"),
        pytest.param("disk", "disk", "No space left on device", marks=FULL),
        pytest.param("shared_memory", "shared_memory", "No space left on device", marks=FULL),
        pytest.param("launcher_killed", "host_memory", "exit code: 137", marks=FULL),
    ],
)
def test_the_next_attempt_starts_at_the_checkpoint(hard: Cloud, trouble: str, failure: str, says: str) -> None:
    name = run_of(TROUBLES.index(trouble))
    hard.start("hard", name)
    put_out = record(hard.ended("hard", name))
    note = put_out["attempts"]["0"]
    assert (note["attempt"], note["class"]) == ("first", failure), note
    assert says in note["evidence"]
    assert put_out["attempt"] == "second"
    assert lines(hard, f"{name}-0") == ["starts at step 0", "step 0 done", "step 1 done", "step 2 done"]
    assert lines(hard, f"{name}-1")[0] == "starts at step 3"


@FULL
def test_a_kill_in_a_roomy_host_is_told_as_such(hard: Cloud) -> None:
    """Exit code 137 is memory to the run, which sees no more; the flight recorder saw a host that was not full."""
    name = run_of(TROUBLES.index("launcher_killed"), 4)
    hard.start("hard", name)
    hard.ended("hard", name)
    killed, completed = json.loads(hard.sagefit("runs", name, "--json").out)["attempts"]
    assert (killed["outcome"], killed["routed_by"]) == ("code", "host_memory")
    assert re.search(r"exit code: 137; host memory at most \d+ % full", killed["evidence"])
    assert completed["started_by"] == "host_memory of first"


@FULL
def test_an_interrupted_spot_job_goes_on_in_the_middle(hard: Cloud) -> None:
    name = run_of(TROUBLES.index("interrupted"))
    hard.start("hard", name)
    put_out = record(hard.ended("hard", name))
    assert (put_out["attempts"], put_out["attempt"]) == ({}, "first")
    said = lines(hard, f"{name}-0")
    assert [line for line in said if line.startswith("starts")] == ["starts at step 0", "starts at step 3"]
    assert "interrupted 1 time: SageMaker started it again" in hard.sagefit("runs", name).out


@FULL
def test_kill_9_of_the_executors_child_is_an_end_like_any_other(hard: Cloud) -> None:
    name = hanging(hard, 1)
    child = process_of(f"{name}-0", "container_init.py")
    assert child
    left = child.children(recursive=True)
    assert left
    child.kill()
    put_out = record(hard.ended("hard", name))
    assert put_out["attempts"]["0"]["class"] == "host_memory"
    assert lines(hard, f"{name}-1")[0] == "starts at step 3"
    assert not [process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@FULL
@pytest.mark.parametrize(("number", "command"), [(2, "watch"), (3, "start")])
def test_kill_9_of_the_command_line_leaves_the_run_alone(hard: Cloud, number: int, command: str) -> None:
    """A ``watch`` dies while it follows the run; a ``run`` dies after it has started one."""
    job = hard.job("hard")
    if command == "watch":
        name = hanging(hard, number)
        arguments = ["watch", name]
    else:
        arguments = ["run", str(job), "--yes"]
    with subprocess.Popen(
        [sys.executable, "-m", "sagefit", *arguments],
        cwd=ROOT,
        env=hard.sagefit.environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("attempt 0 first"):
                break
        os.kill(process.pid, signal.SIGKILL)
    if command != "watch":
        name = json.loads(hard.sagefit("runs", job, "--json", "--limit", "1").out)["run"]
    state = json.loads(hard.sagefit("runs", job, "--json", "--limit", "1").out.splitlines()[0])
    assert (state["run"], state["status"]) == (name, "RUNNING")
    child = wait_until(lambda: process_of(f"{name}-0", "container_init.py"))
    child.kill()
    done = hard.sagefit("watch", name)
    assert "attempt 0 first" in done.err
    assert "attempt 1 second" in done.err
    assert "succeeded" in done.out
