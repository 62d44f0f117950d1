"""Reads a request, traces, writes an outcome. Standard output and error belong to the user's code."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import guard


def main(request_file: Path, result_file: Path) -> int:
    """Trace what ``request_file`` asks for. The outcome is a JSON object with ``result`` or with ``error``.

    ``error`` is {"kind", "message"}: kind ``protocol`` is for the author of the job file or the function to correct,
    ``untraceable`` is what a trace cannot follow.
    """
    request = json.loads(request_file.read_text(encoding="utf-8"))
    guard.enclose(request["memory_bytes"])
    try:
        outcome = {"result": _trace(request, result_file.with_name("progress"))}
    except BaseException as error:  # SystemExit of the user's code too: whatever it is, it is an answer
        traceback.print_exc()
        outcome = {"error": _explain(error, Path(request["code"]))}
    partial = result_file.with_name("result.part")
    partial.write_text(json.dumps(outcome), encoding="utf-8")
    partial.replace(result_file)
    return 0


class _UnusableError(Exception):
    """The interpreter cannot trace at all."""


def _trace(request: Mapping[str, Any], progress: Path) -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise _UnusableError(f"this Python has no torch ({error})") from error
    try:
        from . import tracing
    except ImportError as error:
        raise _UnusableError(f"torch {torch.__version__} cannot trace; use a newer one ({error})") from error
    return tracing.trace(request, lambda stage: progress.write_text(stage, encoding="utf-8"))


def _explain(error: BaseException, code: Path) -> dict[str, str]:
    """An error as one line that names the operator and the line of the user's code."""
    kind = type(error).__name__
    first = (str(error).strip().splitlines() or [kind])[0][:300]
    line = _user_line(error, code)
    at = f"{line}: " if line else ""
    if kind in ("_UnusableError", "ProtocolError", "ModuleNotFoundError"):
        return {"kind": "protocol", "message": at + first if kind == "ModuleNotFoundError" else first}
    operator = getattr(error, "func", None)
    if kind == "DataDependentOutputException":
        what = f"{operator} reads a tensor's value (.item(), or a condition on it)"
    elif kind == "DynamicOutputShapeException":
        what = f"{operator} gives a tensor whose size depends on values"
    elif kind == "UnsupportedOperatorException" or "doesn't have storage" in first or "FakeTensor" in first:
        what = f"{operator or 'a custom kernel'} is not known to FakeTensor: {first}"
    elif isinstance(error, MemoryError) or ("alloc" in first and "memory" in first):
        what = "building the model needs real memory for its values, more than is allowed"
    else:
        what = f"{kind}: {first}"
    return {"kind": "untraceable", "message": at + what}


def _user_line(error: BaseException, code: Path) -> str:
    """The innermost line of the user's own code, as ``file:line``."""
    frames = traceback.extract_tb(error.__traceback__)
    root = str(code) + os.sep
    own = [frame for frame in frames if frame.filename.startswith(root)]
    return f"{own[-1].filename[len(root) :]}:{own[-1].lineno}" if own else ""
