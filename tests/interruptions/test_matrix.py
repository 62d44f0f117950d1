"""An apply is struck at any moment: afterwards plan and apply succeed, with `sagefit recover` where they ask for it.

`make test ARGS=tests/interruptions` prints what became of each cell.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Callable, Iterator

import psutil
import pytest

from interruptions import matrix
from interruptions.gate import Held
from interruptions.ground import LOCAL, WHOLE, Ground, Stack, is_create
from waiting import wait_until

pytestmark = pytest.mark.xdist_group("interruptions")
_FULL = pytest.mark.full(witness="tests/interruptions/test_matrix.py::test_a_strike[INT-after one-local]")
_MANY = 5  # creates that have passed


@pytest.mark.parametrize(
    ("strike", "moment", "backend"),
    [pytest.param(*cell, marks=() if cell in matrix.USUAL else _FULL) for cell in matrix.cells()],
)
def test_a_strike(ground: Ground, strike: str, moment: str, backend: str, request: pytest.FixtureRequest) -> None:
    if strike == "KILL of the cloud":
        ground = request.getfixturevalue("mortal_ground")
    stack = ground.stack(f"cell-{matrix.cells().index((strike, moment, backend))}", backend)
    with _at(moment, stack) as (held, apply):
        code, said = _strike(strike, stack, held, apply)
    assert code == matrix.CODES[strike] or (code == 0 and moment == "init"), said
    if strike in ("INT", "TERM", "HUP") and moment != "init":
        assert f"{stack.key}: Terraform has stopped and released its state" in said
    wait_until(lambda: not stack.terraforms())
    if strike == "KILL of the cloud":
        assert "the embedded cloud stopped" in said
        ground.restart()
    if (strike, moment, backend) == ("KILL of Terraform", "as the state is written", LOCAL):
        _cut(stack)

    done = stack.sagefit("platform", "apply", stack.name, "--yes", check=None)
    how = "apply"
    if done.code:
        assert f"recover {stack.key}" in done.err
        recovered = stack.sagefit("recover", stack.key, "--yes").err
        how = f"recover ({_told(recovered)}), apply"
        stack.apply()
    assert stack.made() == WHOLE  # and nothing is there twice
    assert not stack.terraforms()
    assert not stack.locks()
    request.node.user_properties.append(("cell", (strike, moment, backend, str(code), how)))


@contextlib.contextmanager
def _at(moment: str, stack: Stack) -> Iterator[tuple[Held, subprocess.Popen[str]]]:
    """An apply that has come to this moment."""
    creates = {"after one": 0, "after many": _MANY, "as the state is written": _MANY}
    if moment in creates and not (moment == "as the state is written" and stack.backend != LOCAL):
        held = Held(is_create, after=creates[moment], answered=True)
    else:
        held = Held(_MATCHES[moment])
    with (
        stack.ground.gate.holding(held),
        stack.started("platform", "apply", stack.name, "--yes") as apply,
    ):
        if moment == "init" and stack.backend == LOCAL:  # it asks for nothing, and may have ended between two looks
            wait_until(lambda: held.reached.is_set() or apply.poll() is not None or _runs(stack, "init"))
        else:
            held.wait()
        yield held, apply


_MATCHES: dict[str, Callable[[str], bool]] = {
    "init": lambda request: "HashiCorp" in request,
    "plan": lambda request: "Action=GetCallerIdentity" in request and "terraform-provider-aws" in request,
    "before the first create": is_create,
    "as the state is written": lambda request: request.startswith("PUT") and "platform.tfstate?" in request,
}


def _strike(strike: str, stack: Stack, held: Held, apply: subprocess.Popen[str]) -> tuple[int, str]:
    """Do it, and wait for the end of the command; its exit code and words."""
    if strike in ("INT", "TERM", "HUP"):
        apply.send_signal(signal.Signals[f"SIG{strike}"])
        said = []
        for line in apply.stdout or ():
            said.append(line)
            if "waiting for Terraform" in line:
                break
        held.release()  # Terraform waits for what it cannot give up
        return apply.wait(), "".join([*said, apply.communicate()[0]])
    if strike == "KILL":
        apply.kill()
    elif strike == "KILL of the cloud":
        record = json.loads((stack.sagefit.home / "cloud/cloud.json").read_text(encoding="utf-8"))
        psutil.Process(record["pid"]).kill()
    else:
        for process in stack.terraforms():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if not held.reached.is_set():
            held.release()  # an init that had just ended was not struck, and its apply goes on
        said_at_last = apply.communicate()[0]
        held.release(lost=True)
        return apply.wait(), said_at_last
    held.release(lost=strike != "KILL")
    said_at_last = apply.communicate()[0]
    return apply.wait(), said_at_last


def _runs(stack: Stack, verb: str) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(verb in process.cmdline() for process in stack.terraforms())
    return False


def _cut(stack: Stack) -> None:
    """The state as a kill leaves it that comes between two parts of it: Terraform empties the file, and writes it anew.

    No signal can be timed for that, so the test does it.
    """
    (file,) = stack.sagefit.home.rglob(f"states/{stack.key}.tfstate")
    file.write_text('{\n  "version": 4,\n  "terraform_version": "1.', encoding="utf-8")


def _told(said: str) -> str:
    """What a recovery did, in short."""
    parts = {"is released": "lock", "file of its state": "state file", "to take into the state": "imports"}
    return ", ".join(short for words, short in parts.items() if words in said) or "nothing"
