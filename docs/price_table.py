"""The prices of docs/acceptance.md: what each case costs at most, as ``sagefit acceptance --prices`` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sagefit.acceptance import all_cases, price_of

_MARKS = re.compile(r"(?P<start><!-- made from \.\./acceptance/cases\.yaml -->\n).*?(?=<!-- end -->)", re.DOTALL)
_REGION = "us-east-1"


def with_prices(page: Path) -> str:
    """The text of the page with its table made anew."""
    return _MARKS.sub(
        lambda match: match["start"] + "\n" + "\n".join(_table()) + "\n\n", page.read_text(encoding="utf-8")
    )


def _table() -> Iterator[str]:
    prices = [(case, price_of(case, _REGION)) for case in all_cases()]
    yield f"| case | USD at most in {_REGION} |"
    yield "|---|---:|"
    for case, price in prices:
        yield f"| `{case.name}` | {'~' if price.estimated else ''}{price.usd:.2f} |"
    yield f"| all of them | {sum(price.usd for _, price in prices):.2f} |"
