"""The table of docs/aws.md of what judges instead of AWS: the rows of ``tests/aws/oracles.yaml``, with their versions.

A version is read where it is fixed, in a lock or in the file that a row names, so the page cannot have another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sagefit.paths import ROOT

_MARKS = re.compile(r"(?P<start><!-- made from \.\./tests/aws/oracles\.yaml -->\n).*?(?=<!-- end -->)", re.DOTALL)


def with_oracles(text: str) -> str:
    """The text of a page with its table made anew."""
    return _MARKS.sub(lambda match: match["start"] + "\n" + "\n".join(_table()) + "\n\n", text)


def rows() -> list[dict[str, Any]]:
    """The rows of the file."""
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests/aws/oracles.yaml").read_text(encoding="utf-8"))
    return found


def version_of(row: dict[str, Any], root: Path = ROOT) -> str:
    """The version of an oracle. Raises ValueError unless the files that a row names have one."""
    file, named = row.get("locked") or row["pinned"]
    pattern = rf"(?m)^{re.escape(named)}==([^\s;\\]+)" if "locked" in row else named
    texts = [path.read_text(encoding="utf-8") for path in root.glob(file)]
    found = {version for text in texts for version in re.findall(pattern, text)}
    if len(found) != 1:
        raise ValueError(f"{file}: {len(found)} versions of {row['oracle']}")
    return str(found.pop())


def _table() -> Iterator[str]:
    yield "| what judges | what of ours | source | version | fixed in |"
    yield "|---|---|---|---|---|"
    for row in rows():
        source = f"<{row['source']}>" if row["source"].startswith("https:") else row["source"]
        where = (row.get("locked") or row["pinned"])[0]
        yield f"| {row['oracle']} | {row['judges']} | {source} | {version_of(row)} | `{where}` |"
