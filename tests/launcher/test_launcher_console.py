"""What the script says and what the launcher says share one log, and every line of it stays whole."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagefit_launcher import process
from sagefit_launcher.process import Console

from .conftest import OF_FILES, Container

pytestmark = OF_FILES

ASKED = "[sagefit] asked to stop: the script has 115 s to save its work and end\n"
WITHIN_A_LINE = """
import signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
sys.stdout.write({begin!r})
sys.stdout.flush()
print('begun', file=sys.stderr, flush=True)
while not asked:
    time.sleep(0.01)
time.sleep({pause})
sys.stdout.write({rest!r})
"""


def talk(container: Container, begin: str, rest: str, pause: float = 0.5) -> str:
    """The log of a script that is asked to stop within a line, on which the launcher has something to say."""
    container.code("train.py", WITHIN_A_LINE.format(begin=begin, rest=rest, pause=pause))
    running = container.start()
    assert running.stderr
    assert "begun\n" in iter(running.stderr.readline, "")
    running.send_signal(signal.SIGTERM)
    return container.end(running).stdout


def test_the_launcher_waits_for_the_end_of_the_script_s_line(container: Container) -> None:
    said = talk(container, "loss=0.", "125\nval_acc: 0.9\n")
    assert "loss=0.125\n" in said
    assert "val_acc: 0.9\n" in said
    assert ASKED in said.splitlines(keepends=True)


def test_a_script_that_is_quiet_within_a_line_gets_its_line_feed(container: Container) -> None:
    said = talk(container, "loading", " is done\n", pause=process.QUIET + 2)
    found = re.search(r"loading\n((?:\[sagefit\] .*\n)+) is done\n", said)  # its first metric line may wait, too
    assert found, said
    assert ASKED in found[1].splitlines(keepends=True)


def test_a_script_that_ends_within_a_line_gets_its_line_feed(container: Container) -> None:
    said = talk(container, "loss=0.", "125", pause=0)
    assert "loss=0.125\n[sagefit] " in said
    assert ASKED in said.splitlines(keepends=True)


def test_a_metric_line_never_starts_inside_a_line_of_the_script(container: Container) -> None:
    outcome = container.run("import sys; sys.stdout.write('no line break')")
    assert len(re.findall(r"^\[sagefit\] host_memory_gib=\S+ .*$", outcome.stdout, re.MULTILINE)) == 2
    assert "no line break\n" in outcome.stdout


@contextlib.contextmanager
def written(errors: IO[bytes], *, shared: bool = False) -> Iterator[io.BytesIO]:
    """What the console writes to stdout, with a pause that never comes."""
    output = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:  # not a fixture: pytest's own capture puts its streams in between
        patch.setattr(sys, "stdout", SimpleNamespace(buffer=output))
        patch.setattr(sys, "stderr", SimpleNamespace(buffer=errors))
        patch.setattr(process, "_same_file", lambda *_: shared)
        patch.setattr(process, "QUIET", 3600.0)
        yield output


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["a", "|x", "b\n"], "ab\nx\n"),
        (["a\n", "|x", "b\n"], "a\nx\nb\n"),
        (["a", "|x", "|y", "\nb", "|z", "c\n"], "a\nx\ny\nbc\nz\n"),
        (["10%", "|x", "\r20%", "|y", "\r30%\n"], "10%\r\nx\n20%\r\ny\n30%\n"),  # each begins with its return
        (["10%\r", "|x", "20%\r", "30%\r\n"], "10%\r\nx\n20%\r30%\r\n"),  # each ends with it
        (["a", "|x", "\r\nb\n"], "a\r\nx\nb\n"),
        (["a", "|x"], "a\nx\n"),
        (["a"], "a"),
    ],
)
def test_where_the_launcher_s_lines_go(pieces: list[str], expected: str) -> None:
    with written(io.BytesIO()) as output:
        console = Console()
        for piece in pieces:
            if piece.startswith("|"):
                console.line(piece[1:])
            else:
                console.write(output, piece.encode())
        console.settle()
    assert output.getvalue() == expected.encode()


@given(
    pieces=st.lists(
        st.one_of(st.text("ab \n\r", min_size=1, max_size=6), st.integers(0, 9)),
        max_size=12,
    )
)
def test_no_line_is_ever_broken(pieces: list[str | int]) -> None:
    with written(io.BytesIO()) as output:
        console = Console()
        for piece in pieces:
            if isinstance(piece, int):
                console.line(f"[sagefit] {piece}")
            else:
                console.write(output, piece.encode())
        console.settle()
    said = [line for line in re.split("[\n\r]", output.getvalue().decode()) if line]
    script = "".join(piece for piece in pieces if isinstance(piece, str))
    assert [line for line in said if not line.startswith("[")] == [line for line in re.split("[\n\r]", script) if line]
    ours = [f"[sagefit] {piece}" for piece in pieces if isinstance(piece, int)]
    assert [line for line in said if line.startswith("[")] == ours


@pytest.mark.parametrize("shared", [True, False])
def test_streams_that_end_in_one_place_share_their_lines(shared: bool) -> None:
    """As in a terminal, and in logs that take both."""
    errors = io.BytesIO()
    with written(errors, shared=shared) as output:
        console = Console()
        console.write(errors, b"a warn")
        console.line("x")
        assert output.getvalue() == (b"" if shared else b"x\n")
        console.write(errors, b"ing\n")
        assert output.getvalue() == b"x\n"


def test_one_pipe_is_one_place() -> None:
    ask = "import sys; from sagefit_launcher import process; print(process._same_file(sys.stdout, sys.stderr))"
    for stderr, same in ((subprocess.STDOUT, "True\n"), (subprocess.PIPE, "False\n")):
        done = subprocess.run([sys.executable, "-c", ask], stdout=subprocess.PIPE, stderr=stderr, text=True, check=True)
        assert done.stdout == same
