"""Slips that people make in job files: what the command line answers holds what they need to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from slips import asking

WRONG = (asking.HERE / "wrong.txt").read_text("utf-8").splitlines()
"""Slips whose answers are wrong today; what is mended is taken from here."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("slips")
    asking.prepare(made)
    return made


@pytest.mark.parametrize("slip", asking.slips(), ids=lambda slip: slip.slip.replace(" ", "-"))
def test_the_answer_says_what_to_write(folder: Path, slip: asking.Slip) -> None:
    given = asking.answer(slip, folder)
    wrong = list(asking.lacking(slip, given))
    if slip.slip in WRONG:
        assert wrong, "answered rightly now: take it from wrong.txt"
    else:
        assert not wrong, f"{slip.text}\n{given.text}\n{wrong}"


def test_the_bases_are_right(folder: Path) -> None:
    for base in sorted((asking.HERE / "bases").glob("*.yaml")):
        right = asking.Slip("none", "", base=base.stem, outcome="accepted")
        assert not list(asking.lacking(right, asking.answer(right, folder))), base.name


def test_there_are_enough_of_them_and_none_twice() -> None:
    names = [slip.slip for slip in asking.slips()]
    assert len(names) >= 120
    assert len(names) == len(set(names))
