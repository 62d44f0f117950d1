"""What several things do at the same time: a table that moves on a terminal, else a line for each change."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from rich.live import Live
from rich.table import Table
from rich.text import Text

from sagefit.console import err


class Board:
    """One row for each name, in their order; heard from threads."""

    def __init__(self, names: Iterable[str]) -> None:
        self._now = {name: Text("waiting", style="dim") for name in names}
        self._live = Live(console=err, transient=True, refresh_per_second=4) if err.is_terminal else None
        self._lock = threading.Lock()

    def __enter__(self) -> Board:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, name: str, said: Text) -> None:
        """What one of them does now."""
        with self._lock:
            self._now[name] = said
            if self._live is None:
                err.print(Text.assemble(f"{name}: ", said), soft_wrap=True)
                return
            table = Table.grid(padding=(0, 2))
            for each, now in self._now.items():
                table.add_row(each, now)
            self._live.update(table)
