"""What escalation on out-of-memory wastes, in instance-seconds and USD: part of ``make bench``; writes docs/money.md.

Sagefit's choice and its attempts against two habits: the next instance with twice the memory after each failure, as
Nextflow's ``memory = { 8.GB * task.attempt }`` does it, and the same instance again. ``--check`` compares the page.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from sagefit.paths import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from money_jobs import Trial, on_one_gpu, picked, trial
from money_ways import DEFAULT, HOURS, RETRIES, STRATEGIES, TO_FAIL, Sum, Tried, add_up, usable_gib, usd_per_hour

from accuracy.runs import transformer_runs
from sagefit.catalog import instances

PAGE = ROOT / "docs" / "money.md"
SENSITIVITY = (0.02, 0.10, 0.50)
SURPRISES = (1.0, 1.25, 1.5)  # true need over measured


def page() -> str:
    """The page, with all figures measured now."""
    with tempfile.TemporaryDirectory() as folder:
        twenty = picked(Path(folder))
        everyone = [trial(run, Path(folder)) for run in on_one_gpu(transformer_runs())]
        walks = {name: [strategy(each) for each in twenty] for name, strategy in STRATEGIES.items()}
        surprised = [_surprised(twenty, more) for more in SURPRISES]
        all_walks = {name: [strategy(each) for each in everyone] for name, strategy in STRATEGIES.items()}
    return _TEXT.format(
        default=DEFAULT,
        usable=usable_gib(instances()[DEFAULT]),
        usd=usd_per_hour(DEFAULT),
        retries=RETRIES,
        hours=HOURS,
        to_fail=100 * TO_FAIL,
        summary=_table(walks, len(twenty)),
        sensitivity=_sensitivity(walks),
        surprised=_surprises(surprised),
        count=len(everyone),
        everyone=_table(all_walks, len(everyone)),
        jobs="\n".join(_row(each, [walk[index] for walk in walks.values()]) for index, each in enumerate(twenty)),
        names=" | ".join(STRATEGIES),
    )


def _table(walks: dict[str, list[list[Tried]]], jobs: int) -> str:
    rows = []
    for name, own in walks.items():
        found = add_up(own)
        ends = f"{found.done} of {jobs} | {found.refused} | {found.failed_attempts}"
        rows.append(
            f"| {name} | {ends} | {found.wasted_seconds:,.0f} | {found.wasted_usd:,.2f} | {found.total_usd:,.2f} |"
        )
    return "\n".join(rows)


def _sensitivity(walks: dict[str, list[list[Tried]]]) -> str:
    return "\n".join(
        f"| {name} | " + " | ".join(f"{add_up(own, share).wasted_usd:,.2f}" for share in SENSITIVITY) + " |"
        for name, own in walks.items()
    )


def _surprised(twenty: Sequence[Trial], more: float) -> dict[str, Sum]:
    trials = [replace(each, surprise=more) for each in twenty]
    return {name: add_up([strategy(each) for each in trials]) for name, strategy in STRATEGIES.items()}


def _surprises(surprised: Sequence[dict[str, Sum]]) -> str:
    return "\n".join(
        f"| {name} | " + " | ".join(f"{found[name].done}, {found[name].wasted_usd:,.2f}" for found in surprised) + " |"
        for name in STRATEGIES
    )


def _row(each: Trial, walks: Sequence[list[Tried]]) -> str:
    steps = [
        " → ".join(
            f"{tried.instance_type.removeprefix('ml.')}{'' if tried.fits else ' ✗'}" for tried in islice(walk, 4)
        )
        or "refused"
        for walk in walks
    ]
    return (
        f"| {each.run.id} | {each.run.model} | {each.run.measured:.1f} | {each.run.ratio:.2f} | {' | '.join(steps)} |"
    )


_TEXT = """<!-- Written by tests/bench/bench_money.py (make bench). Do not edit. -->

# What running out of memory costs

Twenty job files, three ways to deal with a GPU that is too small. Wasted is what failed attempts were billed.

| way | jobs that end well | refused before | failed attempts | wasted instance-seconds | wasted USD | USD in all |
|---|--:|--:|--:|--:|--:|--:|
{summary}

The same for all {count} measured runs of transformers on one GPU:

| way | jobs that end well | refused before | failed attempts | wasted instance-seconds | wasted USD | USD in all |
|---|--:|--:|--:|--:|--:|--:|
{everyone}

## How it was computed

- **Jobs.** Measured training runs on one GPU (the tables in `tests/accuracy` name their sources): 15 of transformers
  and 5 of vision models, taken at even distances from the tables. Each becomes a job file with `instance_type: auto`
  and `attempts: auto`, and the planner sees nothing but that file.
- **True need.** On an instance, with an attempt's hyperparameters: the predicted point, times measured over predicted
  of that run (column *off by*). A job runs out of memory when this is above the usable memory of a GPU.
- **Sagefit** starts where its upper bound fits with 10 % to spare, and follows the edges for `gpu_memory`. Where no
  instance fits for certain it refuses the job, says what would help, and spends nothing.
- **Twice the memory each time** starts on `{default}` ({usable:.1f} GiB usable, {usd} USD an hour) and moves to the
  cheapest type with at least twice the memory per GPU. That is kinder than the habit it stands for: the next size of
  the same family has the same GPU.
- **The same instance** is `{default}`, tried {retries} times more.
- **Time.** A run takes {hours:.0f} hours wherever it fits, and fails after {to_fail:.0f} % of that where it does not.
  Both are assumptions: faster GPUs end sooner; some jobs fail in their first step, others in their first evaluation.
- **Prices** are the packaged on-demand prices of us-east-1. All GPUs of an instance are paid for.

The bounds were made from measured runs, these included; what the planner knows of a model that it was not fitted to is
in [accuracy.md](accuracy.md). USD in all counts only what was run: it is low for a way that gives jobs up, and it holds
the price of head-room.

Wasted USD of the twenty jobs, by when an attempt fails:

| way | after 2 % | after 10 % | after 50 % |
|---|--:|--:|--:|
{sensitivity}

And when the planner is further off than it was for these runs, jobs that end well and wasted USD:

| way | need as measured | 25 % above it | 50 % above it |
|---|--:|--:|--:|
{surprised}

## The twenty jobs

✗: ran out of memory. Need is the measured GiB per GPU, off by is measured over predicted.

| run | model | need | off by | {names} |
|---|---|--:|--:|---|---|---|
{jobs}
"""


def main(arguments: list[str]) -> int:
    """Print the page and write it, or with ``--check`` compare it."""
    text = page()
    if "--check" in arguments:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{PAGE.relative_to(ROOT)} is out of date: python tests/bench/bench_money.py writes it")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
