"""Inventories find what differs, say so, and are written anew without becoming wider or narrower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plans.inventory import check, differences, refresh
from plans.normalise import UNKNOWN, Plan

ALLOW = {"Effect": "Allow", "Action": ["s3:GetObject"]}
PLAN: Plan = {
    "values": {
        "aws_s3_bucket.this": {"bucket": "data", "arn": UNKNOWN, "rule": [{"days": 30, "id": "a"}, {"days": 60}]},
        "aws_iam_policy.this": {"policy": {"Statement": {"Read": ALLOW}}},
    },
    "counts": {"aws_s3_bucket": 1, "aws_iam_policy": 1},
    "outputs": {"name": "data"},
    "warnings": [],
}
RIGHT = """\
# Why this matters.
values:
  aws_s3_bucket.this:
    arn: __missing__
    bucket: data
    rule:
      - days: 30  # a month
      - days: 60
    # about the next one
  aws_iam_policy.this:
    policy:
      Statement:
        Read:
          Effect: Allow
          Action:
            - s3:GetObject
counts:
  aws_s3_bucket: 1
  aws_kms_key: 0
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "case.yaml"
    path.write_text(RIGHT, encoding="utf-8")
    return path


def test_what_is_not_named_is_free(inventory: Path) -> None:
    assert differences(inventory, PLAN) == []


WRONG = [
    ("bucket: data", "bucket: other", 'values > aws_s3_bucket.this > bucket\n  - "other"\n  + "data"'),
    ("bucket: data", "bucket: __missing__", 'bucket\n  - "__missing__"\n  + "data"'),
    ("bucket: data", "bucket: data\n    acl: x", 'acl\n  - "x"\n  + __missing__'),
    ("      - days: 60\n", "", 'rule\n  - [{"days": 30}]\n  + [{"days": 30, "id": "a"}, {"days": 60}]'),
    ("days: 60", "days: 61", "rule > 1 > days\n  - 61\n  + 60"),
    ("aws_kms_key: 0", "aws_kms_key: 1", "counts > aws_kms_key\n  - 1\n  + 0"),
    ("aws_s3_bucket: 1", "aws_s3_bucket: 0", "counts > aws_s3_bucket\n  - 0\n  + 1"),
    ("          Effect: Allow\n", "", 'Statement > Read > Effect\n  - __missing__\n  + "Allow"'),
    ("        Read:", "        Write: {}\n        Read:", "Statement > Write\n  - {}\n  + __missing__"),
    ("aws_s3_bucket.this:", "aws_s3_bucket.that:", "+ __missing__"),
]


@pytest.mark.parametrize(("before", "after", "said"), WRONG)
def test_differences_are_said_and_repaired(inventory: Path, before: str, after: str, said: str) -> None:
    inventory.write_text(RIGHT.replace(before, after, 1), encoding="utf-8")
    [found] = differences(inventory, PLAN)
    assert said in found

    refresh(inventory, PLAN)
    assert differences(inventory, PLAN) == []
    assert "# Why this matters." in inventory.read_text(encoding="utf-8")
    assert "# about the next one" in inventory.read_text(encoding="utf-8")


def test_new_statement_is_found_and_written(inventory: Path) -> None:
    statements = {"Read": ALLOW, "Write": {"Effect": "Allow", "Action": "s3:*"}}
    values = PLAN["values"] | {"aws_iam_policy.this": {"policy": {"Statement": statements}}}
    planned = PLAN | {"values": values}
    [found] = differences(inventory, planned)
    assert "Statement > Write" in found

    refresh(inventory, planned)
    assert differences(inventory, planned) == []
    assert "        Write:\n          Effect: Allow\n          Action: s3:*\ncounts:" in inventory.read_text("utf-8")


def test_new_values_take_the_place_of_the_old_and_nothing_else_changes(inventory: Path) -> None:
    bucket = {"bucket": 'a "b" ${c}', "arn": UNKNOWN, "rule": [{"days": 7, "id": "a"}, {"days": 60}], "acl": "new"}
    refresh(inventory, PLAN | {"values": PLAN["values"] | {"aws_s3_bucket.this": bucket}})
    written = RIGHT.replace("bucket: data", 'bucket: "a \\"b\\" ${c}"').replace("days: 30  #", "days: 7  #")
    assert inventory.read_text(encoding="utf-8") == written


@pytest.mark.parametrize("value", ["plain/text:1", "yes", "null", "a: b", "a, b", "*", "12", "", "é\n", 12, True, 0.5])
@pytest.mark.parametrize("context", ["bucket: data", "bucket: 'data'", "bucket: >-\n      data", '"bucket": data'])
def test_any_value_is_written_so_that_it_is_read_again(inventory: Path, value: Any, context: str) -> None:
    inventory.write_text(RIGHT.replace("bucket: data", context), encoding="utf-8")
    planned = PLAN | {
        "values": PLAN["values"] | {"aws_s3_bucket.this": PLAN["values"]["aws_s3_bucket.this"] | {"bucket": value}}
    }
    refresh(inventory, planned)
    assert differences(inventory, planned) == []


def test_what_is_right_stays_as_it_is_written(inventory: Path) -> None:
    refresh(inventory, PLAN)
    assert inventory.read_text(encoding="utf-8") == RIGHT


def test_empty_inventory_fails_and_gets_all_that_is_known(inventory: Path) -> None:
    inventory.write_text("# A new case.\n", encoding="utf-8")
    assert differences(inventory, PLAN) == ["case.yaml is empty"]

    refresh(inventory, PLAN)
    assert differences(inventory, PLAN) == []
    written = inventory.read_text(encoding="utf-8")
    assert written.startswith("# A new case.\nvalues:\n  aws_s3_bucket.this:\n    bucket: data\n    rule:\n")
    assert "arn:" not in written
    assert "warnings: []" in written


def test_failure_shows_the_difference_and_the_command(inventory: Path) -> None:
    inventory.write_text(RIGHT.replace("bucket: data", "bucket: other"), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"bucket\n  - \"other\"\n  \+ \"data\"") as failure:
        check(inventory, PLAN, "modules/x/full")
    assert "make snapshot ARGS=\"-k 'modules/x/full'\"" in str(failure.value)
