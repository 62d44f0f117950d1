"""What the launcher leaves behind: metric lines in the log, sagefit.json, and the failure file.

``sagefit.json`` is one object. Later versions may add keys; ``schema`` changes when a key is given another meaning.

- ``schema``: 1. ``entry_point``, ``training_job``, ``host``, ``started`` (UTC).
- ``exit_code``, ``signal``: of the script; null while it runs, and the signal where none ended it.
- ``class``, ``evidence``: of its failure, null without one.
- ``seconds``: how long the script has run.
- ``host_memory``: ``peak_bytes`` (what counts against the limit), ``limit_bytes`` (null: not known), ``source``
  (``cgroup``, ``process tree`` or ``none``), ``tree_peak_bytes`` (launcher and script, shared pages counted once),
  ``cgroup_peak_bytes`` (the kernel's own account, file cache included; null without one), ``oom_kills``.
- ``shared_memory``: of ``/dev/shm``, ``peak_bytes`` and ``total_bytes`` (0: there is none).
- ``disks``: of each file system ``path``, ``peak_bytes``, ``total_bytes``.
- ``gpus``: of each ``index``, ``name``, ``peak_bytes``, ``total_bytes`` and ``script_peak_bytes`` (the script's own
  part; null where the driver does not tell).
- ``torch``: of each process and device that used CUDA ``pid``, ``rank`` (null outside torchrun), ``device``,
  ``peak_allocated_bytes``, ``peak_reserved_bytes``, as ``torch.cuda`` tells them.
- ``samples``: the last 60, a second or more apart: ``seconds``, ``host_bytes`` (the highest since the one before),
  ``shm_bytes``, ``disk_bytes`` and ``gpu_bytes`` (in the order of ``disks`` and ``gpus``).
- ``history``: of the whole run, at most 120 stretches of ``every_seconds`` each: ``host_bytes``, the highest of each,
  and ``gpu_bytes``, that of the fullest GPU (null without GPUs).
- ``checkpoints``: ``files`` and ``bytes`` in their folder, ``saved_seconds``: when the script last wrote one, in
  seconds since it began (null: it wrote none), and ``newest``: which file that was, below the folder. The
  checkpoint that was last written does not count where the disk is full.
- ``growth``: host memory that grew from one checkpoint to the next, ``bytes_per_checkpoint``, over how many
  ``checkpoints`` it was seen, and for how many more a host with twice the memory would last, ``more_checkpoints``; null
  where it did not.
- ``cut_off``: names of checkpoints that were cut off when the attempt began, and moved out of the script's way.
- ``model``: ``files`` and ``bytes`` in the folder of the model once the script has ended well, else null.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from . import files

GIB = 1024**3
SCHEMA = 1
NOTHING: dict[str, Any] = {
    "seconds": 0.0,
    "host_memory": {
        "peak_bytes": 0,
        "limit_bytes": None,
        "source": "none",
        "tree_peak_bytes": 0,
        "cgroup_peak_bytes": None,
        "oom_kills": 0,
    },
    "shared_memory": {"peak_bytes": 0, "total_bytes": 0},
    "disks": [],
    "gpus": [],
    "torch": [],
    "samples": [],
    "history": None,
    "checkpoints": {"files": 0, "bytes": 0, "saved_seconds": None, "newest": None},
    "growth": None,
    "busy": None,
}
RESERVE = 256 * 1024  # bytes
LONGEST_OWN = 1024**2  # bytes that are read of what a script wrote there itself
_FAILURE, _RESERVED = "output/failure", "output/.sagefit-reserve"
LONGEST_FAILURE = 900  # characters; SageMaker cuts FailureReason at 1024 and adds words of its own


def metric_line(used: int, peak: int, limit: int | None, gpu_percent: float | None, unsaved: float) -> str:
    """One line for the metric definitions of the job. A metric that is not known is not printed."""
    parts = [f"host_memory_gib={used / GIB:.3f}", f"host_memory_peak_gib={peak / GIB:.3f}"]
    if limit:
        parts.append(f"host_memory_percent={100 * used / limit:.1f}")
    if gpu_percent is not None:
        parts.append(f"gpu_memory_percent={gpu_percent:.1f}")
    parts.append(f"unsaved_seconds={unsaved:.1f}")
    return "[sagefit] " + " ".join(parts)


def write_report(root: Path, host: str, first_host: str, content: dict[str, Any]) -> None:
    """Writes ``sagefit.json`` (``sagefit-<host>.json`` on the other hosts) so that it is whole at any moment."""
    name = "sagefit.json" if host == first_host else f"sagefit-{host}.json"
    files.write_whole(root, f"output/data/{name}", (json.dumps(content, separators=(",", ":")) + "\n").encode())


def one_line(text: str) -> str:
    """Text of a script as one line that can be printed."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def failure_text(failure_class: str, evidence: str) -> str:
    """What the job's FailureReason will say: one line that the table of failure patterns knows."""
    text = f"sagefit: {failure_class}: {evidence}"
    return text if len(text) <= LONGEST_FAILURE else text[: LONGEST_FAILURE - 3] + "..."


def reserve(root: Path) -> None:
    """Keeps some room on the disk, so that a script which fills it can still be explained."""
    with contextlib.suppress(OSError):
        files.write(root, _RESERVED, bytes(RESERVE))


def release(root: Path) -> None:
    """Gives the room free."""
    files.remove(root, _RESERVED)


def forget_failure(root: Path) -> None:
    """Removes the failure file of a run that was interrupted and now starts again on this host."""
    files.remove(root, _FAILURE)


def write_failure(root: Path, text: str) -> None:
    """Writes the failure file, from which SageMaker takes the FailureReason."""
    with contextlib.suppress(OSError):  # the log still says it
        files.write(root, _FAILURE, text.encode("utf-8", "replace"))


def read_failure(root: Path) -> str:
    """What the script itself has written into the failure file. Raises OSError where there is none to read."""
    return files.read(root, _FAILURE, LONGEST_OWN).decode("utf-8", "replace")
