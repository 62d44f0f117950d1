"""The numbers of the examples' pages come from a run: ``make examples ARGS=--write``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.promises import EXAMPLES, RUNNABLE, broken
from sagefit.examples import Result, Step, pages
from sagefit.examples.table import HEADINGS, cells, markdown
from sagefit.paths import EXAMPLES as FOLDER
from sagefit.paths import ROOT

KEPT = pages.load()
ROWS = {row.name: row for row in KEPT.rows}
AGAIN = "make examples ARGS=--write"


def test_every_example_has_a_row() -> None:
    assert set(ROWS) == set(EXAMPLES), AGAIN


def test_every_example_has_a_page_with_a_place_for_its_results() -> None:
    folders = {example.path.parent for example in EXAMPLES.values()}
    assert sorted({folder / "README.md" for folder in folders} - set(pages.pages(KEPT))) == []


@pytest.mark.parametrize("page", pages.pages(KEPT), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_shows_what_was_measured(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == pages.pages(KEPT)[page], AGAIN


@pytest.mark.parametrize("name", [name for name in RUNNABLE if name in ROWS])
def test_what_is_shown_is_what_is_promised(name: str) -> None:
    assert list(broken(RUNNABLE[name], ROWS[name])) == []


def test_a_remedy_saves_what_is_predicted() -> None:
    """Within an eighth of the larger peak, which is the error that examples/README.md states."""
    falls = {name: fall for name, _, fall in pages.savings(ROWS)}
    assert set(falls) == {name for name, example in EXAMPLES.items() if example.compared_with}
    assert {name: fall for name, fall in falls.items() if min(fall) <= 0 or abs(fall[0] - fall[1]) > 0.125} == {}


def test_a_remedy_that_saves_nothing_is_found() -> None:
    more, less = Step("a", "host_memory", 0.4, 0.5, 0.4), Step("b", "completed", 0.3, 0.4, 0.4)
    row = Result("minimal", "minimal", "completed", 2, (more, less), {"loss": 0.01})
    assert "measured_gib of b is 0.4, of a 0.4" in list(broken(RUNNABLE["minimal"], row))


def test_results_hold_nothing_of_a_machine_or_a_time() -> None:
    text = pages.RESULTS.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|usr|work)/|\b20\d\d-\d\d-\d\d|-\d{6}-\d{6}", text)


def test_the_page_of_an_example_links_to_its_job_file() -> None:
    for folder in {example.path.parent for example in EXAMPLES.values()}:
        assert f"NAME=examples/{folder.name}/" in (folder / "README.md").read_text(encoding="utf-8"), folder.name


def test_a_row_says_which_attempt_completed() -> None:
    steps = Step("in-memory", "host_memory", 0.5, 0.6, 0.7), Step("streaming", "completed", 0.2, 0.25, 0.21)
    row = cells(Result("a", "b", "completed", 3, steps, {"loss": 0.12345678}))
    assert row == (
        "a/b",
        "completed",
        "2 of 3: streaming, after host_memory",
        "0.20, at most 0.25",
        "0.21",
        "loss=0.12346",
    )
    row = cells(Result("a", "a", "failed", 3, steps[:1], {}))
    assert row == ("a", "failed", "1 of 3: in-memory (host_memory)", "0.50, at most 0.60", "0.70", "")


def test_a_table_leaves_out_empty_columns() -> None:
    row = cells(Result("a", "a", "completed", 1, (Step("main", "completed"),), {"x|y": 1.0}))
    assert markdown(HEADINGS, [row]) == (
        "| job | status | attempts | metric |\n| --- | --- | --- | --- |\n| a | completed | 1 of 1: main | x\\|y=1 |\n"
    )


def test_results_can_be_read_back() -> None:
    assert [Result.from_json(row.as_json()) for row in KEPT.rows] == KEPT.rows
    assert FOLDER / "results.json" == pages.RESULTS
