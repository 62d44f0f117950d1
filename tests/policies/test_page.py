"""``docs/policies.md`` tells of every check what its table says, and has the section that a finding refers to."""

from __future__ import annotations

import csv
import re

from sagefit.checkov import POLICIES
from sagefit.paths import ROOT

PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")


def test_the_table_is_the_one_of_the_checks() -> None:
    with (POLICIES / "checks.csv").open(encoding="utf-8", newline="") as file:
        listed = [(row["id"], row["severity"], row["name"], row["reason"]) for row in csv.DictReader(file)]
    assert re.findall(r"^\| \[(\w+)\]\(#\w+\) \| (\w+) \| (.+?) \| (.+?) \|$", PAGE, flags=re.MULTILINE) == listed


def test_every_check_has_a_section() -> None:
    with (POLICIES / "checks.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    assert re.findall(r"^### (CKV\w+)$", PAGE, flags=re.MULTILINE) == ids


def test_the_settings_of_the_page_are_those_of_the_checks() -> None:
    checks = "".join(path.read_text(encoding="utf-8") for path in (POLICIES / "checks").glob("*.py"))
    assert set(re.findall(r"`(SAGEFIT_[A-Z_]+)` \|", PAGE)) == set(re.findall(r'environ\.get\("(SAGEFIT_\w+)"', checks))
