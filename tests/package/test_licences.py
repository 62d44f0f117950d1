"""What Sagefit installs is listed with its licence, and each licence is one that its users may have."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata

import pytest

from sagefit.paths import ROOT

ALLOWED = {
    *("MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "MPL-2.0", "ISC", "PSF-2.0", "CNRI-Python"),
}
#: How packages call a licence that do not give it in SPDX's words.
FAMILIES = {
    "MIT": r"\bMIT\b",
    "BSD": r"\bBSD\b",
    "Apache": r"\bApache\b",
    "MPL": r"\bMPL\b|Mozilla Public",
    "ISC": r"\bISC\b",
    "PSF": r"\bPSF\b|Python Software Foundation",
    "CNRI": r"\bCNRI\b",
}
PAGE = ROOT / "docs" / "licences.md"
LISTED = dict(re.findall(r"^\| ([a-z0-9._-]+) \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
LOCKED = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
LISTED.pop("package", None)


def families(text: str) -> set[str]:
    return {name for name, pattern in FAMILIES.items() if re.search(pattern, text)}


def test_the_page_lists_what_is_locked() -> None:
    """After a change of the lock: add the package to the page, or remove it."""
    assert set(LISTED) == LOCKED
    assert list(LISTED) == sorted(LISTED)


@pytest.mark.parametrize("package", sorted(LISTED))
def test_a_licence_is_allowed_and_what_the_package_says(package: str) -> None:
    licence = LISTED[package]
    assert set(re.split(r" (?:AND|OR) ", licence)) <= ALLOWED
    try:
        told = metadata(package)
    except PackageNotFoundError:  # of another platform or Python
        return
    if expressions := told.get_all("License-Expression"):
        assert [licence] == expressions
        return
    classifiers = [line for line in told.get_all("Classifier") or [] if line.startswith("License ::")]
    said = families(" ".join([*classifiers, *(text.split("\n")[0] for text in told.get_all("License") or [])]))
    assert said == families(licence)


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "AGPL-3.0-or-later", "MIT AND GPL-2.0-only", "SSPL-1.0", "UNKNOWN"]
)
def test_others_are_not(licence: str) -> None:
    assert not set(re.split(r" (?:AND|OR) ", licence)) <= ALLOWED
