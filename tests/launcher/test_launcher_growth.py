"""A leak is told from a step, a burst and a cache that fills: by what memory is at its lowest between checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from sagefit.running.reports import growth
from sagefit_launcher.evidence import weigh_growth
from sagefit_launcher.growth import GIB, Floors, Growth, find
from sagefit_launcher.recorder import Recorder

from .conftest import DECIDES, Container

pytestmark = pytest.mark.of_files(*DECIDES, "python/sagefit/running/reports.py")

LIMIT = 16 * GIB


def series(law: Callable[[int], float], many: int = 12) -> list[int]:
    return [int(law(at) * GIB) for at in range(many)]


@pytest.mark.parametrize(
    "floors",
    [
        series(lambda at: 3 + at),
        series(lambda at: 3 + 0.2 * at, 61),
        series(lambda at: 3 + at, 5),
        series(lambda at: 3 + at + (0.3 if at % 2 else 0)),  # every other epoch evaluates
        series(lambda at: 3 + at**1.3),
    ],
    ids=["steady", "slow", "short", "uneven", "faster and faster"],
)
def test_steady_growth_is_seen(floors: list[int]) -> None:
    found = find(floors, LIMIT)
    assert found
    growth = (floors[-1] - floors[0]) / (len(floors) - 1)
    assert found.bytes_per_checkpoint == pytest.approx(growth, rel=0.2)
    assert found.checkpoints == len(floors) + 1


@pytest.mark.parametrize(
    "floors",
    [
        [],
        series(lambda at: 3 + at, 4),
        series(lambda _: 3),
        series(lambda at: 3 if at < 6 else 12),
        series(lambda at: 12 - 9 * 0.5**at),
        series(lambda at: 12 - at),
        series(lambda at: 3 + (9 if at == 11 else 0)),
        series(lambda at: 3 + 0.1 * at),
        series(lambda at: 3 + (at % 4) * 2),
    ],
    ids=["none", "few", "flat", "step", "cache", "shrinks", "last", "too little to fill the host", "saw"],
)
def test_what_memory_does_otherwise_is_none(floors: list[int]) -> None:
    assert find(floors, LIMIT) is None


def test_without_a_limit_there_is_none() -> None:
    assert find(series(lambda at: 3 + at), None) is None


def test_bursts_and_what_comes_before_the_first_checkpoint_do_not_count() -> None:
    floors = Floors()
    for used in range(1, 9):  # the data is loaded
        floors.add(used * GIB)
    for epoch in range(8):
        floors.saved(10.0 * epoch + 1)
        floors.saved(10.0 * epoch + 1)  # the same checkpoint
        floors.add(9 * GIB)
        floors.add((14 + epoch % 2) * GIB)
    assert floors.growth(LIMIT) is None


def test_it_is_said_how_long_more_memory_would_last() -> None:
    floors = Floors()
    for epoch in range(8):
        floors.add((3 + epoch) * GIB)
        floors.saved(10.0 * epoch + 1)
        floors.add(15 * GIB)
    assert str(floors.growth(LIMIT)) == (
        "host memory grew by 1 GiB from each checkpoint to the next, 7 times; twice the memory would last for 16 "
        "checkpoints more"
    )


#: Long enough that on a busy machine, where some checkpoints are seen together, enough are seen apart.
LEAKS = """
import os, pathlib, time
checkpoint = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"]) / "step.json"
held = [bytearray(60 * 1024**2)]
for epoch in range(13):
    checkpoint.write_text(str(epoch))
    held.append(bytearray(13 * 1024**2))
    time.sleep(1.2)
os.kill(os.getpid(), 9)
"""


def test_a_script_that_leaks_ends_as_code_where_its_job_says_so(container: Container) -> None:
    container.limit(250)
    container.environment["SAGEFIT_ON_LEAK"] = "stop"
    outcome = container.run(LEAKS)
    grown = outcome.report["growth"]
    assert grown, outcome.report
    assert outcome.report["class"] == "code"
    assert outcome.failure
    assert outcome.failure.startswith("sagefit: code: a leak: host memory grew by 0.0"), outcome.failure
    assert "; train.py was killed (signal 9) with the host at 0.2" in outcome.failure
    assert 10 * 1024**2 < grown["bytes_per_checkpoint"] < 30 * 1024**2
    assert grown["checkpoints"] >= 6
    assert 250 / 30 - 1 <= grown["more_checkpoints"] <= 250 / 10 + 1
    assert growth([outcome.report]).startswith("host memory grew by 0.0")
    assert growth([]) == growth([{"growth": None}]) == growth([{"growth": {"checkpoints": "9"}}]) == ""


class Recorded:
    """A recorder, once the script has ended: not a real one, for that would take as long again."""

    def growth(self) -> Growth | None:
        return find(series(lambda at: 3 + at), LIMIT)


@pytest.mark.parametrize(
    ("asked", "before", "after"),
    [
        (None, "host_memory", "host_memory"),
        ("escalate", "host_memory", "host_memory"),
        ("Stop ", "host_memory", "code"),
        ("stop", "gpu_memory", "gpu_memory"),  # another memory was full
        ("stop", "stopped", "stopped"),
    ],
)
def test_what_a_leak_makes_of_a_class(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, before: str, after: str
) -> None:
    monkeypatch.delenv("SAGEFIT_ON_LEAK", raising=False)
    if asked:
        monkeypatch.setenv("SAGEFIT_ON_LEAK", asked)
    failure_class, text = weigh_growth(before, "killed", cast(Recorder, Recorded()))
    assert failure_class == after
    assert text.startswith("a leak: host memory grew by 1 GiB") is (after == "code")
    assert text.endswith("killed")
