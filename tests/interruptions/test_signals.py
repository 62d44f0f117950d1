"""What is said and done when a command is asked to end or is killed, beside what the matrix shows."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interruptions.gate import Held
from interruptions.ground import LOCAL, WHOLE, Ground, Stack, is_create
from sagefit import signals
from sagefit.paths import ROOT
from waiting import wait_until

pytestmark = pytest.mark.xdist_group("interruptions")


def is_read(request: str) -> bool:
    """The first request of a plan."""
    return "Action=GetCallerIdentity" in request


def heard(command: subprocess.Popen[str]) -> str:
    """What a command says up to the words that it has heard a signal."""
    said = []
    for line in command.stdout or ():
        said.append(line)
        if "waiting for Terraform to stop and release its state" in line:
            break
    return "".join(said)


def lose_what_is_given_up(stack: Stack, held: Held) -> None:
    """What Terraform has given up is not done, and what it only now asks for is: it waits for that."""
    wait_until(lambda: (printed := stack.printed()) is None or "Creation errored" in printed)
    held.release(lost=True)


def is_clean(stack: Stack) -> None:
    assert not stack.terraforms()
    assert not stack.locks()


def test_terraform_finishes_where_its_command_is_killed(ground: Ground) -> None:
    """The next command says who is at work and waits; then there is nothing left to do."""
    stack = ground.stack("killed", LOCAL)
    apply = ("platform", "apply", stack.name, "--yes")
    with ground.gate.holding(Held(is_create)) as held:
        with stack.started(*apply) as applying:
            held.wait()
            terraform = stack.terraform()
            applying.kill()
            applying.communicate()
        with stack.started(*apply) as waiting:
            assert waiting.stdout
            told = waiting.stdout.readline()
            assert f"Terraform (process {terraform.pid}) goes on with sagefit platform apply {stack.name}" in told
            held.release()
            said = waiting.communicate()[0]
    assert waiting.returncode == 0, said
    assert "to create" not in said
    is_clean(stack)
    assert stack.made() == WHOLE


def test_two_commands_on_one_stack_take_turns(ground: Ground) -> None:
    stack = ground.stack("twice", LOCAL)
    apply = ("platform", "apply", stack.name, "--yes")
    with stack.started(*apply) as one, stack.started(*apply) as two:
        said = [command.communicate()[0] for command in (one, two)]
    assert [one.returncode, two.returncode] == [0, 0], said
    assert sum("8 to create" in words for words in said) == 1
    assert sum("is at work on it since" in words for words in said) == 1
    assert stack.made() == WHOLE


@pytest.mark.full(witness="tests/interruptions/test_signals.py::test_terraform_finishes_where_its_command_is_killed")
def test_a_second_signal_leaves_terraform_to_itself(ground: Ground) -> None:
    stack = ground.stack("impatient", LOCAL)
    with ground.gate.holding(Held(is_create)) as held:
        with stack.started("platform", "apply", stack.name, "--yes") as applying:
            held.wait()
            terraform = stack.terraform()
            terraform.suspend()  # it does not stop at once, as one that waits for AWS
            applying.send_signal(signal.SIGINT)
            heard(applying)
            applying.send_signal(signal.SIGTERM)
            said = applying.communicate()[0]
            assert applying.returncode == 143, said
            assert f"Terraform (process {terraform.pid}) goes on" in said
        terraform.resume()
        lose_what_is_given_up(stack, held)
        terraform.wait(60)
    stack.apply()
    is_clean(stack)
    assert stack.made() == WHOLE


def test_a_terminal_that_is_closed_ends_the_command_in_good_order(ground: Ground) -> None:
    """Whoever writes to a terminal that is gone gets an error."""
    stack = ground.stack("closed", LOCAL)
    command = [sys.executable, "-m", "sagefit", "platform", "apply", stack.name, "--yes"]
    with ground.gate.holding(Held(is_create)) as held:
        child, terminal = pty.fork()
        if not child:
            os.execve(command[0], command, stack.sagefit.environment)
        held.wait()
        os.close(terminal)
        lose_what_is_given_up(stack, held)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 129
    is_clean(stack)
    stack.apply()


@pytest.mark.full(witness="tests/interruptions/test_signals.py::test_terraform_finishes_where_its_command_is_killed")
def test_providers_that_outlive_their_terraform_are_ended(ground: Ground, tmp_path: Path) -> None:
    """They do not notice that Terraform was killed. Here it starts them itself; their sockets stay, as they do."""
    stack = ground.stack("orphans", LOCAL)
    stack.sagefit.environment |= {"ATTACHED_PROVIDERS": "", "TMPDIR": str(tmp_path)}
    apply = ("platform", "apply", stack.name, "--yes")
    with ground.gate.holding(Held(is_create)) as held:
        with stack.started(*apply) as applying:
            held.wait()
            stack.terraform().kill()
            said = applying.communicate()[0]
            assert applying.returncode == 1, said
            assert "Terraform was ended by signal 9" in said
        assert not stack.terraforms()
        held.release(lost=True)
    with ground.gate.holding(Held(is_create)) as held:
        with stack.started(*apply) as applying:
            held.wait()
            terraform = stack.terraform()
            applying.kill()
            terraform.kill()
        orphans = stack.terraforms()
        assert orphans
        with stack.started(*apply) as again:
            wait_until(lambda: not any(orphan.is_running() for orphan in orphans))
            held.release()
            said = again.communicate()[0]
            assert again.returncode == 0, said
    is_clean(stack)


@pytest.mark.full(witness="tests/interruptions/test_signals.py::test_terraform_finishes_where_its_command_is_killed")
def test_plans_of_several_stacks_are_told_to_stop(ground: Ground) -> None:
    stack = ground.stack("several", LOCAL)
    with (
        ground.gate.holding(Held(is_read)) as held,
        stack.started("plan", "--all", "--out", str(ground.sagefit.home / "plans"), "--parallel", "2") as planning,
    ):
        held.wait()
        planning.send_signal(signal.SIGTERM)
        held.release()
        said = planning.communicate()[0]
    assert planning.returncode == 143, said
    is_clean(stack)


def test_signals_that_are_ignored_stay_so() -> None:
    """``nohup`` ignores SIGHUP, so that a command goes on."""
    program = (
        "import os, signal; from sagefit import signals; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "signals.listen(); os.kill(os.getpid(), signal.SIGHUP); print('goes on')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "goes on\n"


def test_elsewhere_signals_are_as_before() -> None:
    before = [signal.getsignal(number) for number in signals.ENDING]
    with signals.heard(lambda _: None):
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in signals.ENDING] == before
