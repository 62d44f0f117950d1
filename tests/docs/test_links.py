"""Links on the pages lead somewhere: files and headings exist, and addresses on the web are well formed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.pages import pages, tokens
from sagefit.paths import ROOT

_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}")


def links(page: Path) -> Iterator[str]:
    """Targets of links and images."""
    for token in tokens(page):
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield str(target)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page; a repeated one gets a number."""
    found: dict[str, int] = {}
    everything = tokens(page)
    for index, token in enumerate(everything):
        if token.type == "heading_open":
            inline = everything[index + 1].children or []
            text = "".join(child.content for child in inline if child.type in ("text", "code_inline"))
            kept = "".join(c for c in text.strip().lower() if c in " -_" or unicodedata.category(c)[0] in "LMN")
            anchor = kept.replace(" ", "-")
            found[anchor] = found.get(anchor, -1) + 1
            if found[anchor]:
                found[f"{anchor}-{found[anchor]}"] = 0
    return set(found)


def complaint(page: Path, target: str) -> str | None:
    """What is wrong with a link of a page."""
    address = urlsplit(target)
    if address.scheme or address.netloc:
        good = address.scheme == "https" and _HOST.fullmatch(address.netloc)
        return None if good else f"{target} is no https address"
    file = (page.parent / unquote(address.path)).resolve() if address.path else page
    if not file.exists() or not file.is_relative_to(ROOT):
        return f"{target} does not exist"
    if address.fragment and address.fragment not in anchors(file):
        return f"{target}: {file.name} has no heading for #{address.fragment}"
    return None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [said for target in links(page) if (said := complaint(page, target))] == []


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nowhere.md", "does not exist"),
        ("docs/job-file.md#nothing-of-the-kind", "has no heading"),
        ("#nothing-of-the-kind", "has no heading"),
        ("../../etc/passwd", "does not exist"),
        ("http://example.com", "is no https address"),
        ("https://exa mple.com/", "is no https address"),
        ("https:///path", "is no https address"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(target: str, says: str) -> None:
    found = complaint(ROOT / "README.md", target)
    assert found
    assert says in found


def test_anchors_are_those_of_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `size`, and *more*: a_b!\n## Über\n## Über\n", encoding="utf-8")
    assert anchors(page) == {"size-and-more-a_b", "über", "über-1"}
