"""``python tests/counted.py FILE COMMAND...``: run ``sagefit COMMAND...`` and count how often it plans a job.

The interpreter counts by itself, so nothing is put in place of anything, and it does not matter who calls under what
name. FILE gets a JSON object: calls by part.
"""

from __future__ import annotations

import atexit
import json
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

from sagefit.cli import main
from sagefit.memory.read import read
from sagefit.planning import JobPlan
from sagefit.planning.auto import graph
from sagefit.planning.tfvars import render

PARTS: dict[CodeType, str] = {
    vars(JobPlan)["attempts"].func.__code__: "attempts",
    vars(JobPlan)["candidates"].func.__code__: "candidates",
    graph.__code__: "edges",
    read.__code__: "memory block",
    render.__code__: "text",
}


def counted(file: Path, arguments: list[str]) -> None:
    """Run the command in this process."""
    calls = Counter(dict.fromkeys(PARTS.values(), 0))

    def seen(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (part := PARTS.get(frame.f_code)):
            calls[part] += 1

    atexit.register(lambda: file.write_text(json.dumps(calls), encoding="utf-8"))
    sys.argv = ["sagefit", *arguments]
    sys.setprofile(seen)
    main()


if __name__ == "__main__":
    counted(Path(sys.argv[1]), sys.argv[2:])
