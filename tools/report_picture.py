"""The picture of README.md, from a report: ``python tools/report_picture.py PAGE.html docs/report.svg``.

The page is that of a run of the quickstart: ``make demo``, then ``sagefit --cloud local report quickstart --out
PAGE.html``. The picture has the newest run's course over time and, below it, the memory of its first attempt.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

from sagefit.reporting.html import PICTURES_CSS

MARGIN, GAP = 16, 18


def main(page: Path, target: Path) -> None:
    """Write it."""
    root = ElementTree.parse(page).getroot()  # noqa: S314 - our own page
    of_run = root.find(".//details") if root.find(".//details") is not None else root
    parts, y = [], float(MARGIN)
    for svg in list(of_run.iter("svg"))[:2]:
        _, _, width, height = (float(value) for value in svg.attrib["viewBox"].split())
        inside = "".join(ElementTree.tostring(each, encoding="unicode") for each in svg)
        parts.append(f'<g transform="translate({MARGIN} {y:g})">{re.sub("</?a[^>]*>", "", inside)}</g>')
        y += height + GAP
    style = PICTURES_CSS.read_text(encoding="utf-8")
    wide, high = f"{width + 2 * MARGIN:g}", f"{y:g}"
    target.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">\n'
        f"<title>A run of the quickstart: its first attempt runs out of memory, the second completes</title>\n"
        f"<style>{style}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="var(--paper)"/>\n' + "\n".join(parts) + "\n</svg>\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
