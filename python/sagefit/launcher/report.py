"""What the launcher leaves behind: metric lines in the log, sagefit.json, and the failure file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GIB = 1024**3
LONGEST_FAILURE = 900  # characters; SageMaker cuts FailureReason at 1024 and adds words of its own


def metric_line(used: int, peak: int, limit: int | None, gpu_percent: float | None) -> str:
    """One line for the metric definitions of the job. A metric that is not known is not printed."""
    parts = [f"host_memory_gib={used / GIB:.3f}", f"host_memory_peak_gib={peak / GIB:.3f}"]
    if limit:
        parts.append(f"host_memory_percent={100 * used / limit:.1f}")
    if gpu_percent is not None:
        parts.append(f"gpu_memory_percent={gpu_percent:.1f}")
    return "[sagefit] " + " ".join(parts)


def write_report(output: Path, host: str, first_host: str, content: dict[str, Any]) -> None:
    """Writes ``sagefit.json`` (``sagefit-<host>.json`` on the other hosts) so that it is whole at any moment."""
    name = "sagefit.json" if host == first_host else f"sagefit-{host}.json"
    target = output / "data" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(name + ".part")
    part.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    part.replace(target)


def one_line(text: str) -> str:
    """Text of a script as one line that can be printed."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def failure_text(failure_class: str, evidence: str) -> str:
    """What the job's FailureReason will say: one line that the table of failure patterns knows."""
    text = f"sagefit: {failure_class}: {evidence}"
    return text if len(text) <= LONGEST_FAILURE else text[: LONGEST_FAILURE - 3] + "..."


def write_failure(output: Path, text: str) -> None:
    """Writes the failure file, from which SageMaker takes the FailureReason."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "failure").write_text(text, encoding="utf-8")
