"""Slips that people make in job files: what the command line answers holds what they need to go on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from job_files import write_job
from sagefit.errors import SagefitError
from sagefit.job import load_job, other_names, takes
from sagefit.job.model import OLDER_NAMES
from slips import asking


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("slips")
    asking.prepare(made)
    return made


@pytest.mark.parametrize("slip", asking.slips(), ids=lambda slip: slip.slip.replace(" ", "-"))
def test_the_answer_says_what_to_write(folder: Path, slip: asking.Slip) -> None:
    given = asking.answer(slip, folder)
    wrong = list(asking.lacking(slip, given))
    assert not wrong, f"{slip.text}\n{given.text}\n{wrong}"


def test_an_answer_that_lacks_something_is_noticed() -> None:
    """Each thing that a row asks for is missed in an answer that does not have it."""
    slip = next(slip for slip in asking.slips() if slip.field and slip.line and slip.never and slip.says)
    nothing = asking.Answer(0, " ".join(slip.never))
    asked = len(slip.says) + len(slip.never) + len(("the exit code", "the field", "the line"))
    assert len(list(asking.lacking(slip, nothing))) == asked


def test_the_bases_are_right(folder: Path) -> None:
    for base in sorted((asking.HERE / "bases").glob("*.yaml")):
        right = asking.Slip("none", "", base=base.stem, outcome="accepted")
        assert not list(asking.lacking(right, asking.answer(right, folder))), base.name


def test_there_are_enough_of_them_and_none_twice() -> None:
    names = [slip.slip for slip in asking.slips()]
    assert len(names) >= 120
    assert len(names) == len(set(names))


def test_other_names_lead_to_fields_that_there_are() -> None:
    places = _table()["places"]
    for place, homes in places.items():
        for home in homes:
            path = home.replace(",", " ").replace(":", " ").replace(";", " ").split()[0]
            assert _is_field(place, path) or path in ("a", "each"), f"{place}: {home}"


def test_other_values_stand_for_values_that_there_are() -> None:
    for field, homes in _table()["values"].items():
        known = _choices(field)
        for home in homes:
            assert str(home).split()[0] in known or home.startswith("each class"), f"{field}: {home}"


def test_no_other_name_is_one_of_here() -> None:
    """It would never be asked for, and say something else than the file means."""
    for place, homes in _table()["places"].items():
        here = takes.fields_at(_key(place))
        for home, names in homes.items():
            same = set(str(names).split()) & set(here)
            assert not same or home.startswith(f"{place}."), f"{place}: {names}"


def _table() -> dict[str, dict[str, Any]]:
    text = Path(other_names.__file__).with_suffix(".yaml").read_text("utf-8")
    table: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return table


def _key(place: str) -> tuple[str | int, ...]:
    return tuple(0 if part == "*" else part for part in place.split(".")) if place else ()


def _is_field(place: str, path: str) -> bool:
    """From the place on, from what it lies in, or from the top of the file."""
    *above, name = path.split(".")
    starts = _key(place), _key(place)[:-1], ()
    return any(name in takes.fields_at((*start, *above)) or above[:1] == ["environment"] for start in starts)


def _choices(field: str) -> list[str]:
    *above, name = field.split(".")
    return takes.choices_at((*_key(".".join(above)), name))


def test_older_names_of_an_attempt_go_on_and_are_told_as_they_are_written(tmp_path: Path) -> None:
    older = {newer: older for older, newer in OLDER_NAMES.items()}
    newer = write_job(tmp_path, {"attempts.0.max_runtime": "5m", "attempts.0.warm_pool": "10m"}, file="a.yaml")
    job = load_job(newer)
    newer.unlink()
    names = {f"attempts.0.{older['max_runtime']}": "5m", f"attempts.0.{older['warm_pool']}": "10m"}
    assert load_job(write_job(tmp_path, names, file="b.yaml")).attempts == job.attempts
    (tmp_path / "b.yaml").unlink()
    for changes, told in [
        ({"attempts.0.max_wait_seconds": "1h"}, "attempts[0].max_wait_seconds: SageMaker waits for spot"),
        ({"attempts.0.max_wait": "1h"}, "attempts[0].max_wait: SageMaker waits for spot"),
        ({"attempts.0.max_wait": "1h", "attempts.0.max_wait_seconds": "1h"}, "is an older name of max_wait"),
    ]:
        with pytest.raises(SagefitError, match=re.escape(told)):
            load_job(write_job(tmp_path, changes, file="c.yaml"))
