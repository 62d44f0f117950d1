"""What takes the memory, as a bar."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from sagefit.console import out
from sagefit.memory import Estimate

LENGTH = 36
LEAST = 0.05
"""GiB that are not written as 0.0."""

# One for each part that a phase can have.
STYLES = (
    *("cyan", "green", "magenta", "yellow", "blue", "red", "white", "bright_black", "bright_cyan", "bright_green"),
)
BLOCKS, PLAIN_BLOCKS = "█▓▒░▚▞▤▦▥▧", "#=+*%@o:~x"


def bar(what: str, estimate: Estimate, usable: float, head_room: float) -> Iterator[Text]:
    """The parts as one bar, as long as usable memory or the upper bound, whichever is more; and the legend."""
    scale = LENGTH / max(usable, estimate.upper)
    parts = sorted(((gib, name) for name, gib in estimate.parts.items() if gib > 0), reverse=True)
    line, legend = Text(f"{what:<9} "), Text(" " * 10)
    blocks = BLOCKS if out.encoding.startswith("utf") else PLAIN_BLOCKS
    drawn, total = 0, 0.0
    for index, (gib, name) in enumerate(parts):
        total += gib
        cells = round(total * scale) - drawn
        drawn += cells
        style, block = STYLES[index % len(STYLES)], blocks[index % len(blocks)]
        line.append(block * cells, style=style)
        if gib >= LEAST:
            legend.append("  " if index else "").append(block, style=style).append(f" {name} {gib:.1f}")
    upper, limit = round(estimate.upper * scale), round(usable * (1 - head_room) * scale)
    rest = "".join("|" if cell == limit else "-" if cell < upper else " " for cell in range(drawn, LENGTH + 1))
    line.append(rest.rstrip())
    line.append(f"  {estimate.point:.1f} GiB in {estimate.phase}, at most {estimate.upper:.1f}", style="bold")
    line.append(f" of {usable * (1 - head_room):.1f}")
    yield line
    yield legend
