"""Measures the peak GPU memory of training runs, and writes ``gpu.csv``.

``python tests/accuracy/measure_gpu.py`` measures what is not in the table yet; it needs Python, torch, transformers,
peft, timm and diffusers, and a GPU, but not Sagefit. ``--out FILE`` writes another table, ``--minutes N`` ends after
that time, ``--jobs N`` says how many runs share the GPU, ``--only TEXT`` takes rows that hold the text, ``--speed`` the
rows whose time counts, one after the other. ``--try`` makes a few small runs without a table, on a CPU too.

A run is a process of its own: a CUDA context, an allocator that nobody has used. A run that dies of memory beside
others, or whose allocator had to give memory back, is repeated alone.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import multiprocessing
import multiprocessing.connection
import os
import random
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from accuracy.gpu_rows import COLUMNS, CONFIGURATION, configurations, expected_gib, limited, tries  # noqa: E402

Row = dict[str, Any]

SECONDS, GRACE = 150, 20  # of one run; of runs that have begun when time is up
_FREE = 8  # GiB: a run that dies beside others although the GPU has this much died of its own limit
FIRST = ("drawn", "allocator", "tokens")
LIBRARIES = ("torch", "transformers.trainer", "peft")  # what most runs need


def main() -> None:
    """Measure what is missing and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE / "gpu.csv")
    parser.add_argument("--minutes", type=float, default=1000)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--try", dest="trying", action="store_true")
    arguments = parser.parse_args()
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"}
    if arguments.trying:
        for row, told in _measured(list(tries()), 1, time.monotonic() + 600):
            print(row["model"], row["method"], row["sharding"], row["stack"], told["outcome"], told.get("params"))
            if told["outcome"] != "ended":
                raise SystemExit(told["error"])
        return
    end = time.monotonic() + 60 * arguments.minutes
    kept = _read(arguments.out)
    wanted = [
        row
        for row in (*configurations(), *limited(kept.values()))
        if identity(row) not in kept
        and arguments.only in " ".join(map(str, row.values()))
        and (row["series"] == "speed") == arguments.speed
    ]
    random.Random(5).shuffle(wanted)  # a run that is cut off has some of everything, first of what was drawn by lot
    wanted.sort(key=lambda row: FIRST.index(row["series"]) if row["series"] in FIRST else len(FIRST))
    print(f"{len(kept)} measured, {len(wanted)} to measure", flush=True)
    again: list[Row] = []
    jobs = 1 if arguments.speed else arguments.jobs
    for row, told in _measured(wanted, jobs, end):
        if jobs > 1 and _disturbed(row, told):
            again.append(row)
            continue
        _keep(arguments.out, kept, row | told)
    for row, told in _measured(again, 1, end):
        _keep(arguments.out, kept, row | told)


def _disturbed(row: Row, told: Row) -> bool:
    """Whether other runs on the GPU, not its own limit, took memory from a run: it died, or gave some back."""
    if told["outcome"] == "oom":
        return bool(told["free_gib"] < _FREE)
    return not row["limit_gib"] and int(told.get("retries") or 0) > 0


def identity(row: Row) -> tuple[str, ...]:
    """What of a row says which run it is."""
    return tuple(str(row.get(name, "")) for name in CONFIGURATION)


def _read(path: Path) -> dict[tuple[str, ...], Row]:
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {identity(row): dict(row) for row in csv.DictReader(file)}


def _keep(path: Path, kept: dict[tuple[str, ...], Row], row: Row) -> None:
    shown = ("model", "method", "precision", "micro_batch", "sequence_length", "sharding", "stack", "outcome")
    told = ("allocated_gib", "reserved_gib", "outside_gib", "seconds")
    print(*(row.get(name, "") for name in (*shown, *told)), str(row.get("error", ""))[-250:], flush=True)
    if row["outcome"] == "failed":
        return
    if row["series"] != "speed":
        row = row | {"step_seconds": ""}  # others used the GPU at the same time
    kept[identity(row)] = row
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
        table.writeheader()
        table.writerows(kept.values())


class Worker:
    """A process for one run: it imports what a run needs while others run, and waits for its row."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_work, args=(theirs,))
        self.process.start()
        theirs.close()
        self.row: Row = {}
        self.began = 0.0

    def begin(self, row: Row) -> None:
        """Give it its row."""
        self.row, self.began = row, time.monotonic()
        self.pipe.send(row)

    def told(self) -> Row:
        """What it says when its pipe has something: ready, or what was measured."""
        try:
            said: Row = self.pipe.recv()
        except (EOFError, ConnectionError):
            said = {"outcome": "failed", "error": "the process died"}
        return said | {"seconds": round(time.monotonic() - self.began, 1)}

    def end(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _measured(rows: list[Row], jobs: int, end: float) -> Iterator[tuple[Row, Row]]:
    """Each row with what its process told, as they end; at most ``jobs`` at once, and no more than the GPU holds."""
    waiting, room = list(rows), _gpu_gib() * 0.92
    starting: list[Worker] = []
    ready: list[Worker] = []
    running: list[Worker] = []
    try:
        while (waiting and time.monotonic() < end) or running:
            late = time.monotonic() > end
            while not late and len(starting) + len(ready) < min(len(waiting), jobs):
                starting.append(Worker())
            free = room - sum(expected_gib(worker.row) for worker in running)
            chosen = next((row for row in waiting if not running or expected_gib(row) <= free), None)
            if chosen and ready and len(running) < jobs and not late:
                waiting.remove(chosen)
                running.append(ready.pop())
                running[-1].begin(chosen)
                continue
            heard = multiprocessing.connection.wait([worker.pipe for worker in starting + running], timeout=0.5)
            for worker in [each for each in starting if each.pipe in heard]:
                starting.remove(worker)
                if worker.told().get("outcome") != "ready":
                    raise SystemExit("a process ended before its run: is torch installed?")
                ready.append(worker)
            for worker in list(running):
                over = time.monotonic() - worker.began > SECONDS or time.monotonic() > end + GRACE
                if worker.pipe in heard or over:
                    told = worker.told() if worker.pipe in heard else {"outcome": "failed", "error": "did not end"}
                    running.remove(worker)
                    worker.end()
                    yield worker.row, told
    finally:
        for worker in starting + ready + running:
            worker.end()


def _work(pipe: Any) -> None:
    """One run in a process of its own."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(quiet, descriptor)
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    import torch

    from accuracy.gpu_training import train

    pipe.send({"outcome": "ready"})
    row = pipe.recv()
    try:
        told = train(row) | {"outcome": "ended"}
    except torch.cuda.OutOfMemoryError as error:
        free = torch.cuda.mem_get_info()[0] / 1024**3
        told = {"outcome": "oom", "error": str(error), "free_gib": free, "gpu": torch.cuda.get_device_name()}
        told |= {"torch": torch.__version__}
    except BaseException:  # a second try would fail again: it is told, and not in the table
        told = {"outcome": "failed", "error": traceback.format_exc()}
    pipe.send(told)


def _gpu_gib() -> float:
    """Memory of the first GPU; where there is none, what a machine may give to runs on its CPU."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return 16.0
    nvml.nvmlInit()
    return float(nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(0)).total) / 1024**3


if __name__ == "__main__":
    main()
