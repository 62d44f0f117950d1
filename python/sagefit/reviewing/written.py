"""What the author wrote: the lines of a file that a change edits, beside what they do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import unified_diff

_AROUND = 2  # lines before and after an edit
MOST_LINES = 120


@dataclass(frozen=True)
class Written:
    """A file of a change by its path in the repository; ``before`` is None where it is new."""

    path: str
    before: bytes | None
    after: bytes

    @property
    def lines(self) -> list[str]:
        """The edits as a unified diff, without its head; empty where nothing was edited."""
        before, after = ((side or b"").decode("utf-8", "replace").splitlines() for side in (self.before, self.after))
        return list(unified_diff(before, after, n=_AROUND, lineterm=""))[2:]

    @property
    def line(self) -> int | None:
        """The first line of the new file that is edited; None where nothing was."""
        number = 0
        for line in self.lines:
            if found := re.match(r"@@ -\S+ \+(\d+)", line):
                number = int(found[1])
            elif line.startswith(("+", "-")):
                return max(1, number)
            else:
                number += 1
        return None
