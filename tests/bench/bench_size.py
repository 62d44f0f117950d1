"""How long a prediction takes: ``make bench``; with ``--against 'COMMAND'`` another tool is timed beside it.

One job: ``sagefit size JOB`` against ``python -c pass``, the least that any tool in Python takes. A thousand jobs:
``sagefit size --json *.yaml`` against reading the same files with PyYAML alone, and with a folder of code of a thousand
files, which they share. In turn, medians of five rounds. ``--smoke`` sizes ten jobs once and asks for no goal.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from sagefit.paths import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from job_files import AUTO, changed, write_job

ROUNDS = 5
MANY = 1000
FEW = 10  # of a smoke test
ONE_GOAL, MANY_GOAL = 0.5, 5.0
SHARED_GOAL = 1.2  # times the same jobs with one file of code
FILES = 1000
READ = "import sys, yaml; [yaml.load(open(p), getattr(yaml, 'CSafeLoader', yaml.SafeLoader)) for p in sys.argv[1:]]"
MODELS = [
    AUTO["memory"]["model"],
    "bert-large-uncased",
    "meta-llama/Llama-3.1-8B",
    {"family": "measured", "gpu_gib": 14.2, "host_gib": 30},
    {"family": "tabular", "library": "xgboost", "rows": 40_000_000, "columns": 60},
]


def seconds(command: list[str]) -> float:
    """The time of one run; a job that fits nowhere is an answer like any other."""
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{shlex.join(command)[:200]} ended with {done.returncode}")
    return time.perf_counter() - began


def medians(commands: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """The median time of each command, taken in turn so that a busy machine is busy for all."""
    found = [{name: seconds(command) for name, command in commands.items()} for _ in range(rounds)]
    return {name: statistics.median(times[name] for times in found) for name in commands}


def jobs(folder: Path, count: int, files: int = 1) -> list[Path]:
    """So many job files of all kinds: five models, four batches, three lengths; of ``files`` files of code."""
    folder.mkdir()
    code = write_job(folder, file="first.yaml", job=AUTO).parent / AUTO["code"]["source_dir"]
    for number in range(files - len(list(code.iterdir()))):
        (code / f"module{number:03}.py").write_text(f"NUMBER = {number}\n", encoding="utf-8")
    found = []
    for number in range(count):
        job = changed(
            AUTO,
            {
                "name": None,
                "memory.model": MODELS[number % len(MODELS)],
                "memory.sequence_length": (128, 256, 512)[number % 3],
                "hyperparameters.per_device_train_batch_size": (4, 8, 16, 32)[number % 4],
            },
        )
        found.append(folder / f"job{number:04}.yaml")
        found[-1].write_text(yaml.safe_dump(job, sort_keys=False), encoding="utf-8")
    (folder / "first.yaml").unlink()
    return found


def main() -> int:
    """Print both measurements; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--against", metavar="COMMAND", help="another tool's command for one model")
    parser.add_argument("--smoke", action="store_true", help="ten jobs, once: does it run at all?")
    options = parser.parse_args()
    other, count, rounds = options.against, FEW if options.smoke else MANY, 1 if options.smoke else ROUNDS
    sagefit = str(ROOT / ".venv/bin/sagefit")
    with tempfile.TemporaryDirectory() as name:
        files, shared = ([str(path) for path in jobs(Path(name) / str(of), count, of)] for of in (1, FILES))
        one = medians(
            {"floor": [sys.executable, "-c", "pass"], "size": [sagefit, "size", files[0]]}
            | ({"other": shlex.split(other)} if other else {}),
            rounds,
        )
        many = medians(
            {
                "floor": [sys.executable, "-c", READ, *files],
                "size": [sagefit, "size", "--json", *files],
                "shared": [sagefit, "size", "--json", *shared],
            },
            rounds,
        )
    more = one["size"] - one["floor"]
    print(f"one job: {one['size']:.2f} s, {more:.2f} s more than python -c pass (goal {ONE_GOAL})")
    if other:
        print(f"  {other}: {one['other']:.2f} s, {one['other'] / one['size']:.1f} times as long")
    print(
        f"{count} jobs on {os.cpu_count()} cores: {many['size']:.2f} s (goal {MANY_GOAL}), "
        f"{many['size'] / many['floor']:.1f} times PyYAML alone"
    )
    times = many["shared"] / many["size"]
    print(f"  sharing a folder of {FILES} files: {many['shared']:.2f} s, {times:.2f} times (goal {SHARED_GOAL})")
    return int(not options.smoke and (more > ONE_GOAL or many["size"] > MANY_GOAL or times > SHARED_GOAL))


if __name__ == "__main__":
    sys.exit(main())
