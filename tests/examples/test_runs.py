"""Every runnable example runs on an embedded cloud, through what ``make examples`` does, and keeps its promises.

But for variants that are there to compare a peak with: their numbers come from ``make examples``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from examples.promises import PROMISED, RUNNABLE, TESTED, broken
from sagefit.examples import Result, Stage, Step

_CLOUDS = 2  # each takes seconds to start, and the examples keep no more cores busy
# Kinds: runs out of something, several hosts, goes on from a checkpoint, reads a stream, has no script of its own.
_USUAL = ("disk", "distributed", "spot-checkpoints", "data-modes/data-modes-pipe", "xgboost-builtin")


def _marks(index: int, name: str) -> list[pytest.MarkDecorator]:
    """The usual ones share a cloud."""
    if name in _USUAL:
        return [pytest.mark.xdist_group("examples-0")]
    witness = f"tests/examples/test_runs.py::test_the_example_keeps_its_promises[{_USUAL[0]}]"
    return [pytest.mark.xdist_group(f"examples-{index % _CLOUDS}"), pytest.mark.full(witness=witness)]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One cloud with one platform for all the examples that a process runs."""
    with Stage.open(list(TESTED.values())) as opened:
        yield opened


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(index, name)) for index, name in enumerate(TESTED)])
def test_the_example_keeps_its_promises(stage: Stage, name: str) -> None:
    result = stage.run(TESTED[name])
    assert list(broken(TESTED[name], result)) == []


def test_every_runnable_example_promises_something() -> None:
    assert set(PROMISED) == set(RUNNABLE)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"status": "failed", "reason": "the cloud is gone"}, "failed: the cloud is gone"),
        ({"steps": (Step("main", "host_memory"),)}, "attempts ended as ['host_memory']"),
        ({"metrics": {"accuracy": 0.5, "cv_accuracy": 0.98}}, "accuracy is 0.5, promised is 0.97 to 1"),
        ({"metrics": {"accuracy": 0.98}}, "metrics ['accuracy'], promised are ['accuracy', 'cv_accuracy']"),
        ({"steps": (Step("main", "completed", 0.2, 0.3, 0.5),)}, "more than 2 times off"),
        ({"steps": (Step("main", "completed", 0.5, 0.6, 0.2),)}, "more than 2 times off"),
        ({"steps": (Step("main", "completed", None, None, 0.2),)}, "go together"),
        ({"steps": (Step("main", "completed", 0.2, 0.3, None),)}, "no peak was measured"),
    ],
)
def test_a_broken_promise_is_found(result: dict[str, object], says: str) -> None:
    steps, metrics = (Step("main", "completed", 0.2, 0.3, 0.2),), {"accuracy": 0.98, "cv_accuracy": 0.98}
    good = Result("sklearn", "sklearn", "completed", 1, steps, metrics)
    assert list(broken(RUNNABLE["sklearn"], good)) == []
    (said,) = list(broken(RUNNABLE["sklearn"], replace(good, **result)))[:1]  # type: ignore[arg-type]
    assert says in said
