"""The page on a terminal: a job's table, its words, and what is left out."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from review.plans import change, reviewed
from review.test_jobs import definition, machine
from sagefit.reviewing.judge import Review
from sagefit.reviewing.terminal import page


def shown(review: Review) -> str:
    text = io.StringIO()
    console = Console(file=text, width=160)
    for part in page(review):
        console.print(part)
    return text.getvalue()


def test_a_job_is_shown_as_a_table_with_what_changes() -> None:
    text = shown(reviewed(machine(definition(), definition(batch="16"))))
    row = next(line for line in text.splitlines() if line.startswith("main"))
    assert row.split()[1:4] == ["1", "x", "ml.g6e.xlarge"]
    assert "%" in row
    assert "hyperparameters.per_device_train_batch_size: 32 → 16" in text
    assert "worst case of a run: " in text
    assert " → " in text.split("worst case of a run: ")[1].splitlines()[0]


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (machine(definition(), None), "removed"),
        (machine(definition(), {"StartAt": "x", "States": {}}), "cannot be read from this plan"),
    ],
)
def test_a_job_that_is_gone_or_unreadable_is_said(plan: dict[str, Any], told: str) -> None:
    review = reviewed(plan)
    assert review.jobs
    assert told in shown(review)


def test_a_type_without_a_price_has_none() -> None:
    text = shown(reviewed(machine(None, definition(types=("ml.zz9.large",)))))
    assert "price not found" in text


def test_many_changes_are_counted() -> None:
    many = [change(f"terraform_data.x[{n}]", None, {"input": n}) for n in range(230)]
    review = reviewed(*many)
    text = shown(review)
    assert text.count("  +   terraform_data.x[") == 200
    assert "and 30 more; --format json lists what matters of each" in text
    assert not review.findings
