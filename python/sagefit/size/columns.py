"""A table without lines that a narrow terminal wraps and never cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions
from rich.text import Text

from sagefit.catalog.view import NARROW

_GAP = "  "
_INDENT = 4


class Columns:
    """Rows of cells under ``headings``: one that starts with > is of a column of numbers.

    ``remarks`` is the heading of one more cell a row, of free text, which may be long: it stands beside the row,
    and under it on a narrow terminal.
    """

    def __init__(self, *headings: str, remarks: str = "") -> None:
        self._right = [heading.startswith(">") for heading in headings]
        self._headings = [Text(heading.removeprefix(">"), style="bold") for heading in headings]
        self._remarks = remarks
        self._rows: list[tuple[list[Text], str]] = []

    def add_row(self, *cells: str | Text, remark: str = "") -> None:
        """One row, with a cell for each heading."""
        self._rows.append(([cell if isinstance(cell, Text) else Text(cell) for cell in cells], remark))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        rows = [self._headings, *(cells for cells, _ in self._rows)]
        widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
        start = sum(widths) + len(_GAP) * len(widths)
        wide = options.max_width >= NARROW
        yield self._line(self._headings, widths) + Text(f"{_GAP}{self._remarks}" if wide else "", style="bold")
        for cells, remark in self._rows:
            line = self._line(cells, widths)
            left = start if wide else _INDENT
            said = [part for text in remark.splitlines() for part in Text(text).wrap(console, options.max_width - left)]
            if wide and said:
                line = line + Text(_GAP) + said.pop(0)
            line.rstrip()
            yield line
            for part in said:
                yield Text(" " * left) + part

    def _line(self, cells: Sequence[Text], widths: Sequence[int]) -> Text:
        line = Text()
        for index, (cell, width, right) in enumerate(zip(cells, widths, self._right, strict=True)):
            room = " " * (width - cell.cell_len)
            line += Text(_GAP if index else "") + Text(room if right else "") + cell + Text("" if right else room)
        return line
